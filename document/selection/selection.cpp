#include "fjord/document/selection.h"

#include <fmt/format.h>

#include "selection_lexer.h"
#include "selection_node.h"
#include "selection_parser.h"

namespace fjord {

std::string_view to_string(Match match) {
  switch (match) {
    case Match::False:
      return "False";
    case Match::True:
      return "True";
    case Match::Invalid:
      break;
  }
  return "Invalid";
}

namespace selection {

/// The tree and the properties derived from it.
struct Compiled {
  explicit Compiled(std::unique_ptr<const Condition> tree)
      : root(std::move(tree)),
        types(root->types().when_true),
        buckets(root->buckets().when_true),
        needs(root->needs()),
        is_trivial(root->constant() == Match::True) {}

  std::unique_ptr<const Condition> root;
  TypeSet types;
  BucketSet buckets;
  Needs needs;
  bool is_trivial;
};

}  // namespace selection

Selection::Selection() : Selection(std::make_shared<selection::Compiled>(selection::make_constant(true))) {}

Selection::Selection(std::shared_ptr<const selection::Compiled> compiled) : compiled_(std::move(compiled)) {}

Result<Selection> Selection::parse(std::string_view text, const DocumentTypeRepo& repo) {
  if (text.size() > kBytesMax) {
    return selection::error_at(1, fmt::format("{} bytes are more than the limit of {}", text.size(), kBytesMax));
  }
  FJORD_TRY_ASSIGN(std::unique_ptr<selection::Condition> root, selection::parse(text, repo));
  return Selection(std::make_shared<selection::Compiled>(std::move(root)));
}

Result<Selection> Selection::parse(std::string_view text, const DocumentTypeRepo& repo, const DocumentType& type) {
  if (text.size() > kBytesMax) {
    return selection::error_at(1, fmt::format("{} bytes are more than the limit of {}", text.size(), kBytesMax));
  }
  FJORD_TRY_ASSIGN(std::unique_ptr<selection::Condition> root, selection::parse(text, repo, &type));
  return Selection(std::make_shared<selection::Compiled>(std::move(root)));
}

namespace {

/// Evaluates within the budget of a selection. Empty: it was exceeded.
std::optional<Match> evaluate_within(const selection::Condition& root, std::string_view id, std::uint32_t type_id,
                                     const DocumentView* view, std::optional<std::int64_t> now, std::uint64_t* steps) {
  selection::Scratch scratch(Selection::kStepsMax);
  const Match match = root.evaluate({id, type_id, view, now, scratch});
  if (steps != nullptr) *steps += scratch.budget().spent();
  return scratch.budget().is_exceeded() ? std::nullopt : std::optional(match);
}

}  // namespace

Result<Match> Selection::try_evaluate(const DocumentView& document, std::uint64_t* steps) const {
  const auto match = evaluate_within(*compiled_->root, document.id(), document.type_id(), &document, now_, steps);
  if (match) return *match;
  return Status(
      StatusCode::InvalidSelection,
      fmt::format("the selection needs more than {} steps for the document {}: its texts are too long for what "
                  "is searched in them",
                  kStepsMax, document.id()));
}

Match Selection::evaluate(const DocumentView& document, std::uint64_t* steps) const {
  return evaluate_within(*compiled_->root, document.id(), document.type_id(), &document, now_, steps)
      .value_or(Match::Invalid);
}

Match Selection::evaluate_id(std::string_view document_id, std::uint32_t type_id, std::uint64_t* steps) const {
  if (type_id == 0) {
    const auto parts = selection::IdParts::split(document_id);
    if (parts && parts->type) type_id = stable_id(*parts->type);
  }
  return evaluate_within(*compiled_->root, document_id, type_id, nullptr, now_, steps).value_or(Match::Invalid);
}

Selection Selection::with_now(std::int64_t seconds) const {
  Selection selection = *this;
  selection.now_ = seconds;
  return selection;
}

bool Selection::needs_now() const { return compiled_->needs.now; }
bool Selection::needs_body() const { return compiled_->needs.body; }
bool Selection::is_trivial() const { return compiled_->is_trivial; }

const std::vector<std::uint32_t>* Selection::possible_types() const {
  return compiled_->types.is_all() ? nullptr : &compiled_->types.ids();
}

const std::vector<BucketId>* Selection::possible_buckets() const {
  return compiled_->buckets.is_all() ? nullptr : &compiled_->buckets.buckets();
}

bool Selection::may_match(BucketId bucket) const { return compiled_->buckets.overlaps(bucket); }

std::string Selection::to_string() const {
  selection::Printer printer;
  compiled_->root->print(printer);
  return std::move(printer.text);
}

}  // namespace fjord
