#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/document/value_expression.h"

/// Declarative aggregation: what `fjord aggregate` computes. The page for users is docs/reference/aggregate.md.
namespace fjord::mapreduce {

/// Name of the application that computes an AggregateSpec, and of its only parameter, the specification as JSON.
inline constexpr const char* kAggregateApplication = "aggregate";
inline constexpr const char* kAggregateParameter = "spec";

/// An aggregation as it is written, nothing of it checked.
struct AggregateSpec {
  std::string type;
  std::string selection;                ///< Empty: all documents of the type.
  std::vector<std::string> group_by;    ///< "city", "price / 100 AS hundred"; none: all documents are one group.
  std::vector<std::string> aggregates;  ///< "count()", "avg(price) AS average", "average=avg(price)"
  std::string having;                   ///< A condition on columns of the result.
  std::vector<std::string> order_by;    ///< "average desc", "-average", "city"
  std::uint64_t limit = 0;              ///< 0: none.
  std::string into;                     ///< Document type that the results are put as; empty: they are not.

  /// {"type":"listing","selection":"price > 10","group_by":["city"],"aggregates":["count()"],"having":"count > 1",
  /// "order_by":["count desc"],"limit":10,"into":"city_count"}; only "type" must be there.
  /// Errors: InvalidArgument that names the member, or the position in the text.
  /// With `needs_type` false, as of a pass after the first, "type" may be missing.
  static Result<AggregateSpec> from_json(std::string_view json, bool needs_type = true);
  std::string to_json() const;
  friend bool operator==(const AggregateSpec&, const AggregateSpec&) = default;
};

/// "a,b(c,d)" to "a" and "b(c,d)": commas inside parentheses, brackets, braces and quotes do not count.
std::vector<std::string> split_list(std::string_view text);

/// The cells of a row, which is a JSON array as JobResults gives it: the JSON text of each. Views of `row`.
/// Errors: Corruption.
Result<std::vector<std::string_view>> row_cells(std::string_view row);

/// The id under which a row is put as a document: of the same job name and group it is the same.
std::string row_document_id(std::string_view name_space, std::string_view type, std::string_view job,
                            std::string_view key);

enum class AggregateFunction : std::uint8_t { Count, Sum, Avg, Min, Max, Distinct, Quantile, Histogram, Top };

/// What a column of the result holds.
enum class ColumnKind : std::uint8_t {
  Integer,
  Number,
  String,
  Bool,
  Json,  ///< An array of objects: histogram and top.
};

struct AggregateColumn {
  std::string name;
  ColumnKind kind = ColumnKind::String;
  std::string text;  ///< The expression in its canonical form.
};

/// A specification compiled against the types of a cluster.
///
/// Threading: immutable, readable from any thread. Lifetime: independent of the types.
class AggregatePlan {
 public:
  struct Aggregate {
    AggregateFunction function = AggregateFunction::Count;
    int input = -1;        ///< Index into inputs(); -1: count() of documents.
    ScalarView parameter;  ///< Of quantile, histogram and top.
    bool is_bool = false;  ///< Of the input.
    bool is_integer = false;
  };

  /// Errors: InvalidArgument, InvalidSelection, InvalidField and UnknownType that say which part of the specification,
  /// the column in it, what stands there and what was expected.
  static Result<std::shared_ptr<const AggregatePlan>> compile(const AggregateSpec& spec, const DocumentTypeRepo& types);

  /// Groups first, then aggregates.
  const std::vector<AggregateColumn>& columns() const { return columns_; }
  std::size_t group_count() const { return groups_.size(); }
  const std::vector<ValueExpression>& groups() const { return groups_; }
  /// The arguments of aggregates, each different expression once.
  const std::vector<ValueExpression>& inputs() const { return inputs_; }
  const std::vector<Aggregate>& aggregates() const { return aggregates_; }
  /// True if an expression needs the body part of documents.
  bool needs_body() const { return needs_body_; }
  bool has_having() const { return having_ != nullptr; }
  /// The selection in its canonical form, with the type before each field, for any part of Fjord; may be empty.
  const std::string& selection() const { return selection_; }
  std::uint64_t limit() const { return limit_; }
  bool is_ordered() const { return !order_.empty(); }

  /// Rows are JSON arrays with a value for each column. Errors: Corruption if `row` is none.
  Result<bool> passes_having(std::string_view row) const;
  /// Sorts rows (key and JSON array) by what was asked for, then by the values of their groups, and cuts off what is
  /// beyond the limit. Doing it twice changes nothing. Errors: Corruption.
  Status arrange(std::vector<std::pair<std::string, std::string>>& rows) const;

 private:
  struct Having;
  struct Order {
    std::size_t column = 0;
    bool descending = false;
  };
  friend class AggregateCompiler;
  AggregatePlan() = default;

  std::vector<AggregateColumn> columns_;
  std::vector<ValueExpression> groups_;
  std::vector<ValueExpression> inputs_;
  std::vector<Aggregate> aggregates_;
  std::vector<Order> order_;
  std::shared_ptr<const Having> having_;
  std::string selection_;
  std::uint64_t limit_ = 0;
  bool needs_body_ = false;
};

}  // namespace fjord::mapreduce
