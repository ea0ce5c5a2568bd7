#pragma once

#include <string_view>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// Decides which entries an iteration gives, according to its IterateOptions. Every engine uses this class, so that the
/// options have the same meaning in all engines.
/// Threading: confined to its owner. Lifetime: shares ownership of the options' types and selection.
class EntryFilter {
 public:
  /// Requires `options.types` if there is a selection.
  explicit EntryFilter(const IterateOptions& options);

  /// Returns true if the metadata of an entry passes the filter: its timestamp is in the range, and if it is a remove
  /// entry, these are wanted.
  bool wants(Timestamp timestamp, bool removed) const;
  /// Returns true if entries have to pass `matches` too.
  bool has_selection() const { return options_.selection != nullptr; }
  /// Returns true if `matches` needs the body.
  bool selects_on_body() const;
  /// Returns true if the document passes the selection. A document whose header cannot be read does not match, because
  /// its fields are unknown. Errors: those of Selection::try_evaluate().
  Result<bool> matches(std::string_view header, std::string_view body);
  /// Begins a turn of an engine, which holds up the other work of its stripe. The turn is to end where is_turn_over(),
  /// even if no entry was found in it.
  void begin_turn() { steps_ = 0; }
  bool is_turn_over() const { return steps_ >= Selection::kPauseSteps; }

  bool wants_body() const { return options_.parts == Parts::All; }
  /// Returns the part of a header that is handed out: all of it, or with Parts::IdOnly its beginning up to the end of
  /// the id.
  std::string_view project(std::string_view header) const;

 private:
  IterateOptions options_;
  std::uint64_t steps_ = 0;  ///< Steps of matches() in this turn.
};

}  // namespace fjord::spi
