#include "sd_parser.h"

#include <charconv>
#include <fmt/format.h>

#include "fjord/document/document_format.h"

namespace fjord {

void SdWarnings::passed_over(std::string_view kind, const SdPosition& at) {
  const auto [known, added] = by_kind_.emplace(std::pair(at.source.index, kind), lines_.size());
  if (added) {
    lines_.push_back({at, fmt::format("\"{}\" has no meaning here and is passed over", kind)});
  } else {
    ++lines_[known->second].count;
  }
}

void SdWarnings::add(const SdPosition& at, std::string_view message) { lines_.push_back({at, std::string(message)}); }

std::vector<SchemaWarning> SdWarnings::all() const {
  std::vector<SchemaWarning> all;
  for (const Line& line : lines_) {
    const std::string times = line.count > 1 ? fmt::format(" ({} times)", line.count) : "";
    all.push_back({line.at.source.index, fmt::format("{}: {}{}", line.at.to_string(), line.message, times)});
  }
  return all;
}

namespace {

using Kind = SdToken::Kind;

bool is_identifier(std::string_view text) {
  return text.find_first_of("-.") == std::string_view::npos && !(text[0] >= '0' && text[0] <= '9');
}

class SdParser {
 public:
  SdParser(std::string_view text, SdSource source, SdWarnings& warnings) : lexer_(text, source), warnings_(warnings) {}

  Result<std::vector<SdDocument>> parse() {
    while (peek().kind != Kind::End) {
      if (peek().is_word("schema") || peek().is_word("search")) {
        FJORD_TRY(parse_schema());
      } else if (peek().is_word("document")) {
        FJORD_TRY(parse_document({}));
      } else {
        return expected("schema, search or document");
      }
    }
    return std::move(documents_);
  }

 private:
  const SdToken& peek() const { return lexer_.peek(); }

  Status error_at(const SdPosition& at, std::string_view what) const {
    return {StatusCode::InvalidArgument, fmt::format("{}: {}", at.to_string(), what)};
  }
  Status expected(std::string_view what) const {
    return error_at(peek().at, fmt::format("expected {}, found {}", what, peek().to_string()));
  }

  Status take_symbol(char symbol, std::string_view after) {
    if (!peek().is(symbol)) return expected(fmt::format("'{}' {}", symbol, after));
    lexer_.take();
    return Status::ok();
  }

  Result<std::string> take_name(std::string_view what) {
    if (peek().kind != Kind::Word || !is_identifier(peek().text)) return expected(what);
    return std::string(lexer_.take().text);
  }

  /// Parses: [inherits A [, B]...]
  Result<std::vector<std::string>> take_inherits() {
    std::vector<std::string> names;
    if (!peek().is_word("inherits")) return names;
    do {
      lexer_.take();
      FJORD_TRY_ASSIGN(std::string name, take_name("the name of a type to inherit"));
      names.push_back(std::move(name));
    } while (peek().is(','));
    return names;
  }

  Status parse_schema() {
    const SdPosition at = lexer_.take().at;
    std::string name;
    if (!peek().is('{')) {
      FJORD_TRY_ASSIGN(name, take_name("the name of the schema"));
    }
    if (peek().is_word("inherits")) {
      warnings_.passed_over("schema inherits", peek().at);
      FJORD_TRY_ASSIGN(auto ignored, take_inherits());
    }
    FJORD_TRY(take_symbol('{', "after the name of the schema"));
    const std::size_t before = documents_.size();
    while (!peek().is('}')) {
      if (peek().is_word("document")) {
        FJORD_TRY(parse_document(name));
      } else {
        FJORD_TRY(pass_over_statement("outside of the document"));
      }
    }
    lexer_.take();
    if (documents_.size() == before) return error_at(at, "expected a document in the schema, found none");
    return Status::ok();
  }

  Status parse_document(const std::string& schema_name) {
    SdDocument document;
    document.at = lexer_.take().at;
    document.name = schema_name;
    if (!(peek().is('{') || peek().is_word("inherits")) || schema_name.empty()) {
      FJORD_TRY_ASSIGN(document.name, take_name("the name of the document type"));
    }
    FJORD_TRY_ASSIGN(document.inherits, take_inherits());
    FJORD_TRY(take_symbol('{', "before the fields of the document"));
    while (!peek().is('}')) {
      if (peek().is_word("field")) {
        FJORD_TRY_ASSIGN(SdField field, parse_field());
        document.fields.push_back(std::move(field));
      } else if (peek().is_word("struct")) {
        FJORD_TRY_ASSIGN(SdStruct declared, parse_struct());
        document.structs.push_back(std::move(declared));
      } else if (peek().is_word("compression")) {
        FJORD_TRY(parse_compression_block(document));
      } else if (peek().is_word("header") || peek().is_word("body")) {
        FJORD_TRY(parse_part_compression(document));
      } else if (peek().is_word("keep_while")) {
        FJORD_TRY(parse_keep_while(document));
      } else {
        FJORD_TRY(pass_over_statement("in a document"));
      }
    }
    lexer_.take();
    documents_.push_back(std::move(document));
    return Status::ok();
  }

  /// Parses: keep_while [:] "<selection>"
  Status parse_keep_while(SdDocument& document) {
    const SdToken word = lexer_.take();
    if (document.keep_while) return error_at(word.at, "keep_while is declared twice");
    if (peek().is(':')) lexer_.take();
    if (peek().kind != Kind::String) return expected("a selection in double quotes after \"keep_while\"");
    const std::string_view quoted = peek().text;
    std::string selection;
    for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
      if (quoted[i] == '\\' && quoted[i + 1] == '"') continue;  // All other escapes belong to the selection.
      selection.push_back(quoted[i]);
    }
    lexer_.take();
    document.keep_while = std::move(selection);
    return Status::ok();
  }

  /// Parses: header|body compression <codec> [level <n>] [min_bytes <n>] [threshold <percent>]
  Status parse_part_compression(SdDocument& document) {
    const SdToken part = lexer_.take();
    if (!peek().is_word("compression")) return expected(fmt::format("\"compression\" after \"{}\"", part.text));
    lexer_.take();
    PartCompression compression;
    FJORD_TRY(take_codec(compression));
    while (is_compression_setting(peek())) FJORD_TRY(take_compression_setting(compression));
    FJORD_TRY(check_level(part.at, compression));
    auto& declared = part.text == "header" ? document.header_compression : document.body_compression;
    return set_compression(declared, compression, part);
  }

  /// Parses: compression { type: lz4 level: 9 threshold: 95 }; the block is for both parts of documents.
  Status parse_compression_block(SdDocument& document) {
    const SdToken word = lexer_.take();
    FJORD_TRY(take_symbol('{', "after \"compression\""));
    PartCompression compression;
    bool has_type = false;
    while (!peek().is('}')) {
      if (peek().is_word("type") && !has_type) {
        lexer_.take();
        FJORD_TRY(take_symbol(':', "after \"type\""));
        FJORD_TRY(take_codec(compression));
        has_type = true;
      } else if (is_compression_setting(peek())) {
        FJORD_TRY(take_compression_setting(compression));
      } else {
        return expected("one type, level, min_bytes or threshold, or '}'");
      }
    }
    if (!has_type) return expected("\"type: lz4\" or another in the compression");
    lexer_.take();
    FJORD_TRY(check_level(word.at, compression));
    FJORD_TRY(set_compression(document.header_compression, compression, word));
    return set_compression(document.body_compression, compression, word);
  }

  Status set_compression(std::optional<PartCompression>& declared, const PartCompression& compression,
                         const SdToken& word) const {
    if (declared) return error_at(word.at, "the compression of a part is declared twice");
    declared = compression;
    return Status::ok();
  }

  Status take_codec(PartCompression& compression) {
    using Codec = PartCompression::Codec;
    for (const Codec codec : {Codec::None, Codec::Lz4, Codec::Zstd}) {
      if (!peek().is_word(to_string(codec))) continue;
      compression.codec = codec;
      lexer_.take();
      return Status::ok();
    }
    return expected("none, lz4 or zstd");
  }

  static bool is_compression_setting(const SdToken& token) {
    return token.is_word("level") || token.is_word("min_bytes") || token.is_word("threshold");
  }

  /// Parses: <name> [:] <number>
  Status take_compression_setting(PartCompression& compression) {
    const std::string name(lexer_.take().text);
    if (peek().is(':')) lexer_.take();
    std::uint32_t value = 0;
    const char* end = peek().text.data() + peek().text.size();
    const auto [stop, failure] = std::from_chars(peek().text.data(), end, value);
    const std::uint32_t most = name == "level" ? 22 : name == "threshold" ? 100 : 64U << 20;
    if (peek().kind != Kind::Word || failure != std::errc() || stop != end || value > most) {
      return expected(fmt::format("a number up to {} after \"{}\"", most, name));
    }
    lexer_.take();
    if (name == "level") {
      compression.level = static_cast<int>(value);
    } else {
      (name == "threshold" ? compression.percent_max : compression.min_bytes) = value;
    }
    return Status::ok();
  }

  Status check_level(const SdPosition& at, const PartCompression& compression) const {
    if (compression.codec != PartCompression::Codec::Lz4 || compression.level <= 12) return Status::ok();
    return error_at(at, fmt::format("expected a level up to 12 for lz4, found {}", compression.level));
  }

  Result<SdStruct> parse_struct() {
    SdStruct declared;
    declared.at = lexer_.take().at;
    FJORD_TRY_ASSIGN(declared.name, take_name("the name of the struct"));
    FJORD_TRY_ASSIGN(declared.inherits, take_inherits());
    FJORD_TRY(take_symbol('{', "before the fields of the struct"));
    while (!peek().is('}')) {
      if (peek().is_word("field")) {
        FJORD_TRY_ASSIGN(SdField field, parse_field());
        declared.fields.push_back(std::move(field));
      } else {
        FJORD_TRY(pass_over_statement("in a struct"));
      }
    }
    lexer_.take();
    return declared;
  }

  Result<SdField> parse_field() {
    SdField field;
    field.at = lexer_.take().at;
    FJORD_TRY_ASSIGN(field.name, take_name("the name of the field"));
    if (!peek().is_word("type")) return expected("\"type\" after the name of the field");
    lexer_.take();
    FJORD_TRY_ASSIGN(field.type, parse_type(0));
    FJORD_TRY(take_symbol('{', "after the type of the field"));
    std::optional<std::string> part;
    while (!peek().is('}')) {
      if (peek().is_word("header") || peek().is_word("body")) {
        const SdToken word = lexer_.take();
        if (part && *part != word.text) return error_at(word.at, "expected either header or body, found both");
        part = std::string(word.text);
      } else if (const IndexRole role = index_role_ahead(); role != IndexRole::None) {
        if (field.index != IndexRole::None) return error_at(peek().at, "index is declared twice");
        field.index = role;
        for (int tokens = 0; tokens < 3; ++tokens) lexer_.take();
      } else if (peek().is_word("weightedset")) {
        FJORD_TRY(parse_weighted_set(field.name));
      } else {
        FJORD_TRY(pass_over_statement("in a field"));
      }
    }
    lexer_.take();
    field.in_header = part == "header";
    return field;
  }

  /// Parses `weightedset: OPTION` or `weightedset { OPTION ... }`. An update makes an element that is missing, so
  /// create-if-nonexistent is what happens anyway. Errors: InvalidArgument for remove-if-zero, which updates do not do.
  Status parse_weighted_set(const std::string& field) {
    lexer_.take();
    const bool is_block = peek().is('{');
    if (!is_block && !peek().is(':')) return expected("':' or '{' after weightedset");
    lexer_.take();
    do {
      if (is_block && peek().is('}')) break;
      const SdToken option = lexer_.take();
      if (option.is_word("remove-if-zero")) {
        return error_at(option.at,
                        fmt::format("field {}: remove-if-zero is not known here, an element keeps the weight "
                                    "0: leave it out, and remove elements with {{\"remove\": [...]}}",
                                    field));
      }
      if (!option.is_word("create-if-nonexistent")) {
        return error_at(option.at, "expected create-if-nonexistent");
      }
    } while (is_block);
    if (is_block) lexer_.take();
    return Status::ok();
  }

  /// The role of the statement `index: <role>` that comes next; None for other statements, also those that other
  /// systems begin with "index".
  IndexRole index_role_ahead() const {
    SdLexer ahead = lexer_;
    if (!ahead.take().is_word("index") || !ahead.take().is(':')) return IndexRole::None;
    const SdToken role = ahead.take();
    if (role.is_word("keyword")) return IndexRole::Keyword;
    if (role.is_word("group")) return IndexRole::Group;
    return role.is_word("ad") ? IndexRole::Ad : IndexRole::None;
  }

  /// Parses: name [<type, ...>] [(...)] []...; the last form is an older way to write array<...>.
  Result<SdType> parse_type(int depth) {
    if (depth == kValueDepthMax) return error_at(peek().at, fmt::format("more than {} types nested", kValueDepthMax));
    SdType type;
    type.at = peek().at;
    FJORD_TRY_ASSIGN(type.name, take_name("a type"));
    if (peek().is('<')) {
      do {
        lexer_.take();
        FJORD_TRY_ASSIGN(SdType argument, parse_type(depth + 1));
        type.arguments.push_back(std::move(argument));
      } while (peek().is(','));
      FJORD_TRY(take_symbol('>', "after the types that a type is made of"));
    }
    if (peek().is('(')) FJORD_TRY(pass_over_parentheses());
    for (int arrays = depth + 1; peek().is('['); ++arrays) {
      if (arrays >= kValueDepthMax)
        return error_at(peek().at, fmt::format("more than {} types nested", kValueDepthMax));
      lexer_.take();
      FJORD_TRY(take_symbol(']', "after '['"));
      SdType array{"array", {}, type.at};
      array.arguments.push_back(std::move(type));
      type = std::move(array);
    }
    return type;
  }

  Status pass_over_parentheses() {
    const SdPosition opened = peek().at;
    int depth = 0;
    do {
      if (peek().is('(')) ++depth;
      if (peek().is(')')) --depth;
      if (peek().kind == Kind::End || peek().kind == Kind::Bad) {
        return expected(fmt::format("')' for the '(' of {}", opened.in_source()));
      }
      lexer_.take();
    } while (depth > 0);
    return Status::ok();
  }

  Status pass_over_block() {
    const SdPosition opened = peek().at;
    int depth = 0;
    do {
      if (peek().is('{')) ++depth;
      if (peek().is('}')) --depth;
      if (peek().kind == Kind::End || peek().kind == Kind::Bad) {
        return expected(fmt::format("'}}' for the '{{' of {}", opened.in_source()));
      }
      last_line_ = peek().at.line;
      lexer_.take();
    } while (depth > 0);
    return Status::ok();
  }

  /// Skips a statement: the rest of its line, and every block that starts on the line or right after it.
  Status pass_over_statement(std::string_view where) {
    if (peek().kind != Kind::Word) return expected(fmt::format("a statement or '}}' {}", where));
    const SdToken word = lexer_.take();
    warnings_.passed_over(word.text == "field" ? "field outside of the document" : word.text, word.at);
    std::size_t line = word.at.line;
    while (peek().kind != Kind::End && !peek().is('}')) {
      if (peek().kind == Kind::Bad) return expected("a statement");
      if (peek().is('{')) {
        FJORD_TRY(pass_over_block());
        line = last_line_;
        // Text after a block's closing brace on the same line belongs to the statement if it starts with '|' or another
        // operator. A word starts the next statement.
        if (peek().kind == Kind::Word) return Status::ok();
        continue;
      }
      if (peek().at.line != line) break;
      lexer_.take();
    }
    return Status::ok();
  }

  SdLexer lexer_;
  SdWarnings& warnings_;
  std::vector<SdDocument> documents_;
  std::size_t last_line_ = 0;  // line of the brace that closed the last block
};

}  // namespace

Result<std::vector<SdDocument>> parse_sd(std::string_view text, SdSource source, SdWarnings& warnings) {
  return SdParser(text, source, warnings).parse();
}

Result<std::string> schema_name(std::string_view sd_text) {
  SdLexer lexer(sd_text, {.index = 0, .name = "schema"});
  std::string_view around;  // The name of the schema around the document, which a document without a name has.
  while (lexer.peek().kind != Kind::End) {
    const SdToken token = lexer.take();
    const SdToken& next = lexer.peek();
    if ((token.is_word("schema") || token.is_word("search")) && next.kind == Kind::Word) around = next.text;
    if (!token.is_word("document")) continue;
    if (next.kind == Kind::Word) return std::string(next.text);
    if (!around.empty()) return std::string(around);
    return Status(StatusCode::InvalidArgument, "expected the name of a document type after 'document'");
  }
  return Status(StatusCode::InvalidArgument, "a schema declares a document type: 'document NAME { … }' was not found");
}

}  // namespace fjord
