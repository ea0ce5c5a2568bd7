#include "fjord/document/document_id.h"

#include <charconv>
#include <fmt/format.h>
#include <md5.h>

#include "fjord/common/coding.h"
#include "text.h"

namespace fjord {
namespace {

using Md5 = std::array<std::uint8_t, MD5_DIGEST_LENGTH>;

Md5 md5(std::string_view bytes) {
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  Md5 digest;
  MD5Final(digest.data(), &context);
  return digest;
}

std::uint64_t low64(const Md5& digest) {
  return load_fixed<std::uint64_t>(reinterpret_cast<const char*>(digest.data()));
}

}  // namespace

GlobalId GlobalId::of(const DocumentId& id) { return id.gid(); }

GlobalId GlobalId::from_bytes(std::string_view twelve_bytes) {
  GlobalId gid;
  FJORD_CHECK(twelve_bytes.size() == gid.bytes.size());
  std::memcpy(gid.bytes.data(), twelve_bytes.data(), gid.bytes.size());
  return gid;
}

std::string GlobalId::to_string() const {
  std::string out = "gid(0x";
  for (std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out + ")";
}

BucketId bucket_of(const GlobalId& gid, unsigned used_bits) {
  FJORD_CHECK(used_bits <= BucketId::kUsedBitsMax);
  return BucketId(used_bits, gid.location_bits() | (gid.hash_bits() & ~std::uint64_t{0xffffffff}));
}

/// Parses an id from left to right. `at_` is the position that an error names.
class DocumentIdParser {
 public:
  explicit DocumentIdParser(std::string_view text) : text_(text) {}

  Result<DocumentId> parse() {
    FJORD_TRY(check_text());
    FJORD_TRY_ASSIGN(std::string_view scheme, take_part("the scheme"));
    id_.scheme_end_ = static_cast<std::uint16_t>(scheme.size());
    if (scheme == "id") {
      FJORD_TRY(parse_id());
    } else if (scheme == "doc" || scheme == "userdoc" || scheme == "groupdoc") {
      FJORD_TRY(parse_old(scheme));
    } else {
      at_ = 0;
      return error("expected the scheme id, doc, userdoc or groupdoc");
    }
    id_.user_part_ = static_cast<std::uint16_t>(at_);
    id_.text_ = text_;
    hash();
    return std::move(id_);
  }

 private:
  using Scheme = DocumentId::Scheme;

  Status error(std::string_view what) const {
    return {StatusCode::InvalidId, fmt::format("document id {}, byte {}: {}", quoted(text_), at_, what)};
  }

  Status check_text() {
    if (text_.size() > DocumentId::kBytesMax) {
      at_ = DocumentId::kBytesMax;
      return error(fmt::format("{} bytes long, at most {} are allowed", text_.size(), DocumentId::kBytesMax));
    }
    at_ = utf8_prefix(text_);
    if (at_ != text_.size()) return error("not UTF-8");
    for (at_ = 0; at_ < text_.size(); ++at_) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < 0x20 || byte == 0x7f) return error("control character");
    }
    at_ = 0;
    return Status::ok();
  }

  /// Returns the text up to the next colon and skips the colon.
  Result<std::string_view> take_part(std::string_view what) {
    const std::size_t colon = text_.find(':', at_);
    if (colon == std::string_view::npos) {
      at_ = text_.size();
      return error(fmt::format("expected ':' after {}", what));
    }
    if (colon > DocumentId::kPrefixBytesMax) {
      at_ = DocumentId::kPrefixBytesMax;
      return error(fmt::format("more than {} bytes before the user part", DocumentId::kPrefixBytesMax));
    }
    const std::string_view part = text_.substr(at_, colon - at_);
    at_ = colon + 1;
    return part;
  }

  Result<std::string_view> take_namespace() {
    FJORD_TRY_ASSIGN(std::string_view part, take_part("the namespace"));
    id_.namespace_end_ = static_cast<std::uint16_t>(at_ - 1);
    return part;
  }

  Status parse_id() {
    id_.scheme_ = Scheme::Id;
    FJORD_TRY(take_namespace().status());  // the namespace may be empty
    const std::size_t begin = at_;
    FJORD_TRY_ASSIGN(std::string_view type, take_part("the document type"));
    if (type.empty()) {
      at_ = begin;
      return error("empty document type");
    }
    id_.type_end_ = static_cast<std::uint16_t>(at_ - 1);
    const std::size_t modifier_begin = at_;
    FJORD_TRY_ASSIGN(std::string_view modifier, take_part("the modifier (n=, g= or nothing)"));
    const std::size_t user_part = at_;
    if (!modifier.empty()) {
      at_ = modifier_begin;
      FJORD_TRY(parse_modifier(modifier));
      at_ = user_part;
    }
    return Status::ok();
  }

  Status parse_modifier(std::string_view modifier) {
    const std::string_view key = modifier.substr(0, 2);
    if (key != "n=" && key != "g=") return error("expected n=<number>, g=<group> or nothing");
    at_ += 2;
    const std::string_view value = modifier.substr(2);
    if (key == "n=") return parse_number(value);
    if (value.empty()) return error("empty group");
    const std::size_t comma = value.find(',');
    if (comma != std::string_view::npos) {
      at_ += comma;
      return error("a group has no ',': only one modifier is allowed");
    }
    id_.has_group_ = true;
    id_.group_begin_ = static_cast<std::uint16_t>(at_);
    return Status::ok();
  }

  Status parse_number(std::string_view digits) {
    if (digits.empty()) return error("expected a number");
    const char* end = digits.data() + digits.size();
    const auto [stop, failure] = std::from_chars(digits.data(), end, id_.location_);
    if (failure == std::errc::result_out_of_range) return error("the number does not fit in 64 bits");
    if (failure != std::errc() || stop != end) {
      at_ += static_cast<std::size_t>(stop - digits.data());
      return error("expected a number of 64 bits without sign");
    }
    if (digits.size() > 1 && digits.front() == '0') {
      return error(fmt::format("expected the number without zeros in front, {}", id_.location_));
    }
    id_.has_number_ = true;
    return Status::ok();
  }

  Status parse_old(std::string_view scheme) {
    id_.scheme_ = scheme == "doc" ? Scheme::Doc : scheme == "userdoc" ? Scheme::UserDoc : Scheme::GroupDoc;
    const std::size_t namespace_begin = at_;
    FJORD_TRY_ASSIGN(std::string_view namespace_name, take_namespace());
    if (namespace_name.empty()) {
      at_ = namespace_begin;
      return error(fmt::format("empty namespace, which only the scheme id may have, not {}", scheme));
    }
    if (id_.scheme_ == Scheme::Doc) return Status::ok();
    const std::size_t begin = at_;
    FJORD_TRY_ASSIGN(std::string_view value, take_part(id_.scheme_ == Scheme::UserDoc ? "the number" : "the group"));
    const std::size_t user_part = at_;
    at_ = begin;
    if (id_.scheme_ == Scheme::UserDoc) {
      FJORD_TRY(parse_number(value));
    } else {
      if (value.empty()) return error("empty group");
      id_.has_group_ = true;
      id_.group_begin_ = static_cast<std::uint16_t>(begin);
    }
    at_ = user_part;
    return Status::ok();
  }

  void hash() {
    const Md5 whole = md5(id_.text_);
    if (id_.has_group_) {
      id_.location_ = low64(md5(*id_.group()));
    } else if (id_.scheme_ == Scheme::Doc) {
      id_.location_ = low64(whole);
    } else if (!id_.has_number_) {
      id_.location_ = low64(md5(id_.user_part()));
    }
    std::memcpy(id_.gid_.bytes.data(), &id_.location_, 4);
    std::memcpy(id_.gid_.bytes.data() + 4, whole.data() + 4, 8);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  DocumentId id_;
};

Result<DocumentId> DocumentId::parse(std::string_view text) { return DocumentIdParser(text).parse(); }

std::string_view DocumentId::scheme() const { return std::string_view(text_).substr(0, scheme_end_); }

std::optional<std::string_view> DocumentId::group() const {
  if (!has_group_) return std::nullopt;
  return part(group_begin_, user_part_ - 1u);
}

}  // namespace fjord
