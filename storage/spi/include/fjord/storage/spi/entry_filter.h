#pragma once

#include <string_view>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// What IterateOptions ask of one entry; every engine decides with it, so that all mean the same.
/// Threading: confined to its owner. Lifetime: shares the options' types and selection.
class EntryFilter {
 public:
  /// A selection needs the types.
  explicit EntryFilter(const IterateOptions& options);

  /// By what the metadata says alone: time range, and whether removed entries are wanted.
  bool wants(Timestamp timestamp, bool removed) const;
  /// True if there is a selection to ask, which `matches` does.
  bool has_selection() const { return options_.selection != nullptr; }
  /// True if `matches` has to be given the body.
  bool selects_on_body() const;
  /// A document whose header cannot be read does not match: it is nobody's answer to a question about its fields.
  bool matches(std::string_view header, std::string_view body) const;

  bool wants_body() const { return options_.parts == Parts::All; }
  /// The part of a header that is handed out: all of it, or up to the end of the id.
  std::string_view project(std::string_view header) const;

 private:
  IterateOptions options_;
};

}  // namespace fjord::spi
