#include "fjord/search/search_document.h"

#include <algorithm>
#include <bit>

#include "fjord/common/coding.h"

namespace fjord::search {
namespace {

void put_double(std::string& out, double value) { put_fixed(out, std::bit_cast<std::uint64_t>(value)); }

/// Reads what the encode() functions write.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : reader_(bytes) {}
  std::string_view text() { return reader_.string(); }
  std::uint64_t varint() { return reader_.varint(); }
  double number() { return std::bit_cast<double>(reader_.fixed<std::uint64_t>()); }
  bool ended_well() const { return reader_.ok() && reader_.remaining() == 0; }

 private:
  ByteReader reader_;
};

std::optional<FieldSlice> number_field(const DocumentView& document, std::string_view name) {
  std::optional<FieldSlice> found = document.field(name);
  return found && found->is_number() ? found : std::nullopt;
}

/// Returns a number of the document, at most `max`; `otherwise` if the document does not have it.
double number_or(const DocumentView& document, std::string_view name, double otherwise, double max) {
  const std::optional<FieldSlice> found = number_field(document, name);
  if (!found) return otherwise;
  const double value = found->as_double();
  return value >= 0.0 && value <= max ? value : otherwise;
}

std::int64_t integer_or(const DocumentView& document, std::string_view name, std::int64_t otherwise) {
  const std::optional<FieldSlice> found = number_field(document, name);
  return found ? found->as_int64() : otherwise;
}

std::string_view text_or_empty(const DocumentView& document, std::string_view name) {
  const std::optional<FieldSlice> found = document.field(name);
  return found ? found->as_string_view() : std::string_view();
}

std::string folded_text(std::string_view text) {
  std::string out;
  for (const std::string& word : fold_words(text)) {
    if (!out.empty()) out.push_back(' ');
    out += word;
  }
  return out;
}

bool fill_keyword(const DocumentView& document, std::string_view indexed, SearchDocument& out) {
  out.words = folded_text(indexed);
  if (out.words.empty()) return false;
  const std::string_view kind = text_or_empty(document, "match");
  out.kind = kind == "exact" ? MatchKind::Exact : kind == "phrase" ? MatchKind::Phrase : MatchKind::Broad;
  KeywordData data{.id = document.id()};
  data.bid_micros = std::clamp<std::int64_t>(integer_or(document, "bid_micros", 0), 0, kBidMicrosMax);
  data.ctr = number_or(document, "ctr", data.ctr, 1.0);
  data.relevance = number_or(document, "relevance", data.relevance, 1.0);
  data.conversion = number_or(document, "conversion", data.conversion, 1.0);
  out.payload = data.encode();
  return true;
}

void fill_group(const DocumentView& document, SearchDocument& out) {
  GroupData data{.id = document.id()};
  data.advertiser = static_cast<std::uint64_t>(std::max<std::int64_t>(integer_or(document, "advertiser", 0), 0));
  data.trust = number_or(document, "trust", data.trust, 1.0);
  data.landing = number_or(document, "landing", data.landing, 1.0);
  data.budget_left = number_or(document, "budget_left", data.budget_left, 1.0);
  data.hours = static_cast<std::uint32_t>(integer_or(document, "hours", 0) & 0xffffff);
  data.age_min = static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer_or(document, "age_min", 0), 0, 150));
  data.age_max = static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer_or(document, "age_max", 0), 0, 150));
  const std::string language = folded_text(text_or_empty(document, "language"));
  const std::string region = folded_text(text_or_empty(document, "region"));
  const std::string topics = folded_text(text_or_empty(document, "topics"));
  data.language = language;
  data.region = region;
  data.topics = topics;
  out.payload = data.encode();
}

void fill_ad(const DocumentView& document, std::string_view indexed, SearchDocument& out) {
  constexpr double kDeviceMax = 10.0;
  AdData data{.id = document.id(), .title = indexed};
  data.ctr = number_or(document, "ctr", data.ctr, 1.0);
  data.phone = number_or(document, "phone", data.phone, kDeviceMax);
  data.desktop = number_or(document, "desktop", data.desktop, kDeviceMax);
  data.tablet = number_or(document, "tablet", data.tablet, kDeviceMax);
  out.payload = data.encode();
}

}  // namespace

std::optional<SearchDocument> search_document_of(const DocumentView& document) {
  if (document.type() == nullptr) return std::nullopt;
  const Field* indexed = document.type()->indexed_field();
  if (indexed == nullptr) return std::nullopt;
  const Result<DocumentId> id = DocumentId::parse(document.id());
  if (!id || !id->number()) return std::nullopt;
  SearchDocument out;
  out.role = indexed->index;
  out.group = *id->number();
  const std::optional<FieldSlice> value = document.field(*indexed);
  const std::string_view text = value ? value->as_string_view() : std::string_view();
  switch (out.role) {
    case IndexRole::Keyword:
      if (!fill_keyword(document, text, out)) return std::nullopt;
      return out;
    case IndexRole::Group:
      fill_group(document, out);
      return out;
    case IndexRole::Ad:
      fill_ad(document, text, out);
      return out;
    case IndexRole::None:
      break;
  }
  return std::nullopt;
}

std::string KeywordData::encode() const {
  std::string out;
  put_string(out, id);
  put_varint(out, static_cast<std::uint64_t>(bid_micros));
  put_double(out, ctr);
  put_double(out, relevance);
  put_double(out, conversion);
  return out;
}

std::optional<KeywordData> KeywordData::decode(std::string_view bytes) {
  PayloadReader in(bytes);
  KeywordData data;
  data.id = in.text();
  data.bid_micros = static_cast<std::int64_t>(in.varint());
  data.ctr = in.number();
  data.relevance = in.number();
  data.conversion = in.number();
  return in.ended_well() ? std::optional(data) : std::nullopt;
}

std::string GroupData::encode() const {
  std::string out;
  put_string(out, id);
  put_varint(out, advertiser);
  put_double(out, trust);
  put_double(out, landing);
  put_double(out, budget_left);
  put_varint(out, hours);
  put_varint(out, age_min);
  put_varint(out, age_max);
  put_string(out, language);
  put_string(out, region);
  put_string(out, topics);
  return out;
}

std::optional<GroupData> GroupData::decode(std::string_view bytes) {
  PayloadReader in(bytes);
  GroupData data;
  data.id = in.text();
  data.advertiser = in.varint();
  data.trust = in.number();
  data.landing = in.number();
  data.budget_left = in.number();
  data.hours = static_cast<std::uint32_t>(in.varint());
  data.age_min = static_cast<std::uint32_t>(in.varint());
  data.age_max = static_cast<std::uint32_t>(in.varint());
  data.language = in.text();
  data.region = in.text();
  data.topics = in.text();
  return in.ended_well() ? std::optional(data) : std::nullopt;
}

std::string AdData::encode() const {
  std::string out;
  put_string(out, id);
  put_string(out, title);
  put_double(out, ctr);
  put_double(out, phone);
  put_double(out, desktop);
  put_double(out, tablet);
  return out;
}

std::optional<AdData> AdData::decode(std::string_view bytes) {
  PayloadReader in(bytes);
  AdData data;
  data.id = in.text();
  data.title = in.text();
  data.ctr = in.number();
  data.phone = in.number();
  data.desktop = in.number();
  data.tablet = in.number();
  return in.ended_well() ? std::optional(data) : std::nullopt;
}

}  // namespace fjord::search
