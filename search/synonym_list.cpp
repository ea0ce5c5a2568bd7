#include "synonym_list.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::search {
namespace {

constexpr Duration kRetry = seconds(1);

/// True if no retry can make the list usable; searches then say so.
bool is_unusable(const Status& status) {
  const StatusCode code = status.code();
  return code == StatusCode::NotFound || code == StatusCode::Corruption || code == StatusCode::InvalidArgument;
}

}  // namespace

SynonymList::SynonymList(Clock& clock, TunableRegistry& tunables, visitors::Mailbox mailbox,
                         std::unique_ptr<SynonymSource> source)
    : clock_(clock),
      wanted_(tunables.declare("search.synonyms")),
      mailbox_(std::move(mailbox)),
      source_(std::move(source)) {}

Status SynonymList::add_forms(std::vector<QueryVariant>& forms) {
  const auto wanted = static_cast<std::uint64_t>(wanted_.value());
  if (wanted == 0) {
    synonyms_.reset();
    in_force_ = 0;
    return Status::ok();
  }
  if (in_force_ != wanted) {
    if (problem_of_ != wanted) {
      problem_of_ = wanted;
      problem_ = Status::ok();
      next_try_ = clock_.now();
    }
    if (reading_ == 0 && clock_.now() >= next_try_) read(wanted);
    if (is_unusable(problem_)) return problem_.with_context(fmt::format("search.synonyms is {}", wanted));
    if (!synonyms_) return {StatusCode::NotReady, fmt::format("list {} of synonyms is not read yet", wanted)};
  }
  synonyms_->add_forms(forms);
  return Status::ok();
}

void SynonymList::read(std::uint64_t number) {
  reading_ = number;
  if (source_ == nullptr) return on_text(number, Status(StatusCode::NotFound, "this broker reads no lists"));
  source_->read(number, [this, mailbox = mailbox_, number](Result<std::string> text) {
    // A closed mailbox drops the task, so it never runs after the end of this object.
    mailbox.post([this, number, text = std::move(text)] { on_text(number, text); });
  });
}

void SynonymList::on_text(std::uint64_t number, const Result<std::string>& text) {
  reading_ = 0;
  // The setting may name another list by now.
  if (problem_of_ != number) return;
  next_try_ = clock_.now() + kRetry;
  Result<Synonyms> list = text ? Synonyms::parse(*text) : Result<Synonyms>(text.error());
  if (list) {
    synonyms_ = std::move(*list);
    in_force_ = number;
    problem_ = Status::ok();
    return;
  }
  Status status = list.error();
  if (status.code() == StatusCode::NotFound) {
    status = {StatusCode::NotFound, fmt::format("there is no list {} of synonyms", number)};
  }
  if (status.message() != problem_.message()) {
    log::warning("search", "list {} of synonyms cannot be used: {}", number, status.to_string());
  }
  problem_ = status;
}

}  // namespace fjord::search
