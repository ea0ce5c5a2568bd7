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

/// Makes the documents of the benchmarks. Document n is a function of the seed and n alone, so that every benchmark
/// knows what must be stored without asking.
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
  /// The number in an id; empty if it is not one of ours.
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
  std::vector<double> cumulative_;  // by city: the probability of it or one before it
  std::vector<std::string> words_;
};

/// Hash of both parts: what a benchmark compares instead of keeping all documents.
std::uint64_t fingerprint(std::string_view header, std::string_view body);
/// By number, for the documents 0 to `count` - 1.
std::vector<std::uint64_t> fingerprints(const ListingGenerator& generator, std::uint64_t count);

}  // namespace fjord::bench
