#include "aggregate_application.h"

#include <memory>
#include <utility>

#include "fjord/mapreduce/aggregate_spec.h"
#include "group_table.h"

namespace fjord::mapreduce {
namespace {

/// Runs an AggregatePlan as an application: its accumulator maps documents, and reduce() makes a row from a group's
/// partial results.
class AggregateApplication final : public Application {
 public:
  ~AggregateApplication() override { reset(); }

  Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
    FJORD_TRY_ASSIGN(AggregateSpec spec, AggregateSpec::from_json(parameters.text(kAggregateParameter)));
    if (spec.type != type.name()) {
      return Status(StatusCode::InvalidArgument,
                    "the specification is for the type \"" + spec.type + "\", the job reads \"" + type.name() + "\"");
    }
    if (parameters.types() == nullptr) {
      return Status(StatusCode::InvalidArgument, "an aggregation needs all document types of the cluster");
    }
    reset();
    FJORD_TRY_ASSIGN(plan_, AggregatePlan::compile(spec, *parameters.types()));
    states_ = std::make_unique<AggregateStates>(*plan_);
    group_ = std::make_unique<Group[]>(states_->size() / sizeof(Group) + 1);
    return Status::ok();
  }

  Status map(const DocumentView&, Emitter&) override {
    return Status(StatusCode::NotImplemented, "an aggregation has an accumulator of its own");
  }

  Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) override {
    char* const group = reinterpret_cast<char*>(group_.get());
    std::size_t heap = 0;
    states_->construct(group);
    Status status;
    for (const std::string_view value : values) {
      if (status) status = states_->merge(group, value, heap);
    }
    std::string row;
    if (status) status = GroupTable::write_row(*plan_, *states_, key, group, row);
    states_->destroy(group);
    FJORD_TRY(status);
    FJORD_TRY_ASSIGN(const bool passes, plan_->passes_having(row));
    if (passes) result.emit(std::move(row));
    return Status::ok();
  }

  bool needs_body() const override { return plan_->needs_body(); }
  bool is_aggregation() const override { return true; }
  const std::vector<AggregateColumn>* columns() const override { return &plan_->columns(); }
  bool is_limited() const override { return plan_->limit() != 0; }
  /// Without `group_by` all documents form one group, which has a row even without documents, as in SQL.
  std::optional<std::pair<std::string, std::string>> tuple_of_nothing() const override {
    if (plan_->group_count() != 0) return std::nullopt;
    char* const group = reinterpret_cast<char*>(group_.get());
    std::pair<std::string, std::string> tuple;
    states_->construct(group);
    states_->encode(group, tuple.second);
    states_->destroy(group);
    return tuple;
  }
  std::unique_ptr<Accumulator> make_accumulator() override { return std::make_unique<GroupTable>(plan_); }
  Result<std::string> key_text(std::string_view key) const override {
    std::string text;
    FJORD_TRY(GroupTable::write_key(*plan_, key, text));
    return text;
  }
  Status arrange(JobRows& results) const override {
    return plan_->limit() == 0 ? Status::ok() : plan_->arrange(results);
  }

 private:
  struct alignas(16) Group {
    char bytes[16];
  };
  void reset() {
    states_.reset();
    plan_.reset();
  }

  std::shared_ptr<const AggregatePlan> plan_;
  std::unique_ptr<AggregateStates> states_;
  std::unique_ptr<Group[]> group_;
};

}  // namespace

ApplicationInfo aggregate_info() {
  return {
      kAggregateApplication,
      "Groups documents by expressions and computes aggregates of each group: what `fjord aggregate` runs. A result "
      "is a JSON array with a value for each column.",
      {{kAggregateParameter, "The specification as JSON (docs/reference/aggregate.md).", std::nullopt}},
      [] { return std::make_unique<AggregateApplication>(); }};
}

}  // namespace fjord::mapreduce
