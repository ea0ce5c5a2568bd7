#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "sd_lexer.h"

/// Parses the syntax of schemas (.sd). DocumentTypeRepo::build() resolves names.
namespace fjord {

struct SdType {
  std::string name;  ///< "array", "int", a struct's name
  std::vector<SdType> arguments;
  SdPosition at;
};

struct SdField {
  std::string name;
  SdType type;
  bool in_header = false;
  IndexRole index = IndexRole::None;
  SdPosition at;
};

struct SdStruct {
  std::string name;
  std::vector<std::string> inherits;
  std::vector<SdField> fields;
  SdPosition at;
};

struct SdDocument {
  std::string name;
  std::vector<std::string> inherits;
  std::vector<SdStruct> structs;
  std::vector<SdField> fields;
  std::optional<PartCompression> header_compression;
  std::optional<PartCompression> body_compression;
  std::optional<std::string> keep_while;
  SdPosition at;
};

/// The statements that were skipped, by kind, with the place of the first one of each kind.
class SdWarnings {
 public:
  void passed_over(std::string_view kind, const SdPosition& at);
  /// Adds a line of its own for one statement.
  void add(const SdPosition& at, std::string_view message);
  /// One for each kind of statement that is passed over in a text, and one for each call of add(), by first occurrence.
  std::vector<SchemaWarning> all() const;

 private:
  struct Line {
    SdPosition at;
    std::string message;
    std::size_t count = 1;
  };
  std::vector<Line> lines_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_kind_;
};

/// Errors: InvalidArgument with the place, what was expected and what was found.
Result<std::vector<SdDocument>> parse_sd(std::string_view text, SdSource source, SdWarnings& warnings);

}  // namespace fjord
