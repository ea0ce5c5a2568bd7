#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/document/document.h"
#include "fjord/mapreduce/aggregate_spec.h"

namespace fjord::test {

inline const std::string kSaleSchema = R"(
document sale {
  struct maker { field name type string {} field founded type int {} }
  field city type string { header }
  field year type int { header }
  field amount type double { header }
  field cents type long { header }
  field paid type bool { header }
  field tags type array<string> { header }
  field by type maker { header }
  field scores type map<string, int> { header }
  field note type string { body }
}
document total {
  field city type string { header }
  field count type long { header }
}
)";

inline std::shared_ptr<const DocumentTypeRepo> sale_types() {
  auto types = DocumentTypeRepo::build(std::span(&kSaleSchema, 1));
  REQUIRE(types);
  return *types;
}

/// Field values of one sale; a field without a value is not set.
struct Sale {
  std::optional<std::string> city = {};
  std::optional<int> year = {};
  std::optional<double> amount = {};
  std::optional<std::int64_t> cents = {};
  std::optional<bool> paid = {};
};

/// Returns a sale with values that aggregations have trouble with: absent ones, ties, and doubles whose sum rounds.
inline Sale random_sale(Random& random) {
  Sale sale;
  if (random.chance(0.9)) sale.city = "city " + std::to_string(random.below(12));
  if (random.chance(0.9)) sale.year = 1990 + static_cast<int>(random.below(40));
  if (random.chance(0.9)) sale.amount = static_cast<double>(random.below(1000)) * (random.chance(0.2) ? 1e25 : 0.1);
  if (random.chance(0.9)) sale.cents = static_cast<std::int64_t>(random.below(50)) - 20;
  return sale;
}

inline Document document_of(const DocumentTypeRepo& types, int n, const Sale& sale) {
  Document document(*types.find("sale"),
                    *DocumentId::parse("id:t:sale:n=" + std::to_string(n) + ":" + std::to_string(n)));
  if (sale.city) REQUIRE(document.set("city", *sale.city).is_ok());
  if (sale.year) REQUIRE(document.set("year", *sale.year).is_ok());
  if (sale.amount) REQUIRE(document.set("amount", *sale.amount).is_ok());
  if (sale.cents) REQUIRE(document.set("cents", *sale.cents).is_ok());
  if (sale.paid) REQUIRE(document.set("paid", *sale.paid).is_ok());
  return document;
}

}  // namespace fjord::test
