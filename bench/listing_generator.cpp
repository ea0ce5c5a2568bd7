#include "listing_generator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <set>

#include "fjord/common/check.h"
#include "fjord/common/hash.h"
#include "fjord/common/random.h"

namespace fjord::bench {
namespace {

constexpr std::string_view kIdPrefix = "id:bench:listing::";
constexpr std::size_t kWords = 4096;
constexpr std::size_t kCountries = 60;
constexpr std::size_t kTitleWords = 5;
constexpr std::uint64_t kPriceMax = 100'000;
// The city of a document is drawn from random numbers of its own, so that cities can be counted without making
// documents.
constexpr std::uint64_t kCityStream = 0x63697479;

std::string make_word(Random& random, std::size_t syllables) {
  static constexpr std::array<std::string_view, 16> kConsonants = {"b", "d", "f", "g", "h", "k", "l",  "m",
                                                                   "n", "p", "r", "s", "t", "v", "st", "br"};
  static constexpr std::array<std::string_view, 8> kVowels = {"a", "e", "i", "o", "u", "ai", "ou", "ea"};
  std::string word;
  for (std::size_t i = 0; i < syllables; ++i) {
    word += kConsonants[random.below(kConsonants.size())];
    word += kVowels[random.below(kVowels.size())];
  }
  return word;
}

std::string make_name(Random& random, std::size_t syllables) {
  std::string name = make_word(random, syllables);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

/// Returns how many bytes the length `value` takes in the wire form.
std::size_t varint_size(std::size_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

}  // namespace

ListingGenerator::ListingGenerator(const DocumentType& type, std::uint64_t seed) : type_(&type), seed_(seed) {
  Random random(seed);
  std::vector<std::string> countries;
  for (std::size_t i = 0; i < kCountries; ++i) countries.push_back(make_name(random, 2 + random.below(2)));
  std::set<std::string> taken;
  double total = 0;
  while (cities_.size() < kCities) {
    std::string name = make_name(random, 2 + random.below(3));
    if (!taken.insert(name).second) continue;
    cities_.push_back({std::move(name), countries[random.below(kCountries)]});
    total += 1.0 / static_cast<double>(cities_.size());
    cumulative_.push_back(total);
  }
  for (double& sum : cumulative_) sum /= total;
  for (std::size_t i = 0; i < kWords; ++i) words_.push_back(make_word(random, 1 + random.below(4)));
}

Result<ListingGenerator> ListingGenerator::make(const DocumentTypeRepo& types, std::uint64_t seed) {
  const DocumentType* type = types.find("listing");
  if (type == nullptr) {
    return Status(StatusCode::UnknownType,
                  "the cluster has no document type \"listing\"; deploy bench/listing.sd first");
  }
  for (const std::string_view name : {"city", "country", "title", "price", "description"}) {
    if (type->field(name) == nullptr) {
      return Status(StatusCode::InvalidField, fmt::format("the cluster's type \"listing\" has no field \"{}\"", name));
    }
  }
  return ListingGenerator(*type, seed);
}

std::string ListingGenerator::id(std::uint64_t number) const { return fmt::format("{}{}", kIdPrefix, number); }

std::optional<std::uint64_t> ListingGenerator::number_of(std::string_view id) {
  if (!id.starts_with(kIdPrefix)) return std::nullopt;
  const char* end = id.data() + id.size();
  std::uint64_t number = 0;
  const auto [at, error] = std::from_chars(id.data() + kIdPrefix.size(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

std::size_t ListingGenerator::city_index(std::uint64_t number) const {
  const double draw = Random(mix64(seed_ ^ kCityStream, number)).uniform();
  const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), draw);
  return std::min(static_cast<std::size_t>(at - cumulative_.begin()), kCities - 1);
}

std::string_view ListingGenerator::city(std::uint64_t number) const { return cities_[city_index(number)].name; }

std::int32_t ListingGenerator::price(std::uint64_t number) const {
  Random random(mix64(seed_, number));  // The price is the first number that document() draws.
  return static_cast<std::int32_t>(random.below(kPriceMax));
}

EncodedDocument ListingGenerator::document(std::uint64_t number) const {
  Random random(mix64(seed_, number));
  const auto parsed = DocumentId::parse(id(number));
  FJORD_CHECK(parsed.has_value());
  Document document(*type_, *parsed);
  const auto set = [&](std::string_view field, FieldValue value) {
    const Status status = document.set(field, std::move(value));
    FJORD_CHECK(status.is_ok());
  };
  const auto append_word = [&](std::string& text) {
    if (!text.empty()) text += ' ';
    text += words_[random.below(kWords)];
  };
  const City& city = cities_[city_index(number)];
  set("city", city.name);
  set("country", city.country);
  set("price", static_cast<std::int32_t>(random.below(kPriceMax)));
  std::string title;
  for (std::size_t i = 0; i < kTitleWords; ++i) append_word(title);
  set("title", std::move(title));

  // The description brings the document to kDocumentBytes. A field takes 5 bytes, its length and its text.
  const std::size_t rest = kDocumentBytes - encode(document).size() - 5;
  const std::size_t description_bytes = rest - varint_size(rest);
  std::string description;
  description.reserve(description_bytes + 32);
  while (description.size() < description_bytes) append_word(description);
  description.resize(description_bytes);
  set("description", std::move(description));
  return encode(document);
}

std::uint64_t fingerprint(std::string_view header, std::string_view body) { return hash64(body, hash64(header)); }

std::vector<std::uint64_t> fingerprints(const ListingGenerator& generator, std::uint64_t count) {
  std::vector<std::uint64_t> out;
  out.reserve(count);
  for (std::uint64_t number = 0; number < count; ++number) {
    const EncodedDocument document = generator.document(number);
    out.push_back(fingerprint(document.header, document.body));
  }
  return out;
}

}  // namespace fjord::bench
