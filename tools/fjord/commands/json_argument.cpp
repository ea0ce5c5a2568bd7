#include "commands/json_argument.h"

#include "fjord/library/detail/input_file.h"

namespace fjord::cli {

Result<JsonArgument> json_argument(const std::string& argument, std::size_t bytes_max) {
  if (argument.starts_with('{')) return JsonArgument{argument, "command line"};
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(argument));
  auto text = file->read_all(bytes_max);
  if (!text) return text.error().with_context(file->name());
  return JsonArgument{std::move(*text), file->name()};
}

}  // namespace fjord::cli
