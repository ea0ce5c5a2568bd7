#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord::bench {

/// Makes the documents of the benchmarks. Document n depends only on the seed and n, so every benchmark knows the
/// expected content without reading it.
///
/// Ids are "id:bench:listing::<n>". Header and body together have kDocumentBytes bytes. Cities are drawn from kCities
/// names by Zipf's law with exponent 1: the most frequent one has about 13 % of the documents.
///
/// Threading: immutable, every thread. Lifetime: `types` outlives it.
class ListingGenerator {
 public:
  static constexpr std::size_t kCities = 1000;
  static constexpr std::size_t kDocumentBytes = 800;

  /// Errors: UnknownType or InvalidField if `types` lacks the type of listing.sd.
  static Result<ListingGenerator> make(const DocumentTypeRepo& types, std::uint64_t seed);

  std::string id(std::uint64_t number) const;
  /// Returns the number in an id; empty if this generator does not make such an id.
  static std::optional<std::uint64_t> number_of(std::string_view id);

  EncodedDocument document(std::uint64_t number) const;
  std::string_view city(std::uint64_t number) const;
  std::int32_t price(std::uint64_t number) const;

 private:
  struct City {
    std::string name;
    std::string country;
  };

  ListingGenerator(const DocumentType& type, std::uint64_t seed);
  std::size_t city_index(std::uint64_t number) const;

  const DocumentType* type_;
  std::uint64_t seed_;
  std::vector<City> cities_;
  std::vector<double> cumulative_;  // By city: probability that a draw is this city or an earlier one.
  std::vector<std::string> words_;
};

/// Returns a hash of header and body, which benchmarks compare instead of keeping all documents.
std::uint64_t fingerprint(std::string_view header, std::string_view body);
/// Returns the fingerprints of documents 0 to `count` - 1.
std::vector<std::uint64_t> fingerprints(const ListingGenerator& generator, std::uint64_t count);

}  // namespace fjord::bench
