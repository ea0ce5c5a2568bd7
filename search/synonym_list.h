#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/tunable.h"
#include "fjord/search/broker_documents.h"
#include "fjord/search/synonyms.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::search {

/// The list of synonyms that the setting search.synonyms names.
///
/// Threading: confined to the broker's executor.
class SynonymList {
 public:
  /// `source` may be null: then no list is found. Lifetime: the mailbox is closed before this ends.
  SynonymList(Clock& clock, TunableRegistry& tunables, visitors::Mailbox mailbox,
              std::unique_ptr<SynonymSource> source);

  /// Adds the forms of a query that the list demands. If the setting has just changed, the former list counts until the
  /// new one is read. Errors: NotReady if a broker that has none yet is reading its first list; why the list that the
  /// setting names can never be used, for example NotFound.
  Status add_forms(std::vector<QueryVariant>& forms);

 private:
  void read(std::uint64_t number);
  void on_text(std::uint64_t number, const Result<std::string>& text);

  Clock& clock_;
  Tunable& wanted_;
  visitors::Mailbox mailbox_;
  std::unique_ptr<SynonymSource> source_;
  std::optional<Synonyms> synonyms_;
  std::uint64_t in_force_ = 0;
  std::uint64_t reading_ = 0;  ///< Number of the list that is being read; 0: none.
  Status problem_;             ///< Why the list that the setting names is not in use.
  std::uint64_t problem_of_ = 0;
  MonotonicTime next_try_;
};

}  // namespace fjord::search
