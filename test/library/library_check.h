#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string>

#include "fjord/fjord.h"

// What the parts of fjord-library-check share.

inline constexpr int kDocuments = 3000;
extern int failures;

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      ++failures;                                                                   \
      std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
    }                                                                               \
  } while (false)
#define CHECK_OK(status_expression)                                                         \
  do {                                                                                      \
    if (const fjord::Status checked = (status_expression); !checked) {                      \
      ++failures;                                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, checked.to_string().c_str()); \
    }                                                                                       \
  } while (false)

inline std::string id_of(int number) { return fmt::format("id:shop:item::{}", number); }

// library_check_threads.cpp, on the documents 0 to kDocuments - 1
void check_blocks(fjord::Client& client);
void check_executor(const char* addresses);
void check_ended_aggregations(fjord::Client& client);
