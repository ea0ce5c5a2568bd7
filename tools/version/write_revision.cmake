# Writes revision.h into OUTPUT with the git revision of SOURCE, if it is not what is there. Run by each build:
#   cmake -DSOURCE=<folder> -DOUTPUT=<file> -P write_revision.cmake
# The revision stays empty where SOURCE is not the top of a git working tree: a copy inside another one is not of its revision.

set(revision "")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    file(REAL_PATH "${top}" top)
    file(REAL_PATH "${SOURCE}" source)
    if(top STREQUAL source)
      execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks describe --always --exclude=* --abbrev=12 --dirty
        OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#pragma once

#define FJORD_REVISION "@revision@"
]] @ONLY)
