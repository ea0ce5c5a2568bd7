#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/document/value_expression.h"
#include "fjord/mapreduce/job_rows.h"

/// Declarative aggregation: what `fjord aggregate` computes. The page for users is docs/reference/aggregate.md.
namespace fjord::mapreduce {

/// Name of the application that computes an AggregateSpec, and of its only parameter: the specification as JSON.
inline constexpr const char* kAggregateApplication = "aggregate";
inline constexpr const char* kAggregateParameter = "spec";

/// An aggregation as the user wrote it, unchecked.
struct AggregateSpec {
  std::string type;
  std::string selection;  ///< Empty: all documents of the type.
  /// For example "city" or "price / 100 AS hundred". Empty: all documents form one group.
  std::vector<std::string> group_by;
  std::vector<std::string> aggregates;  ///< For example "count()", "avg(price) AS average" or "average=avg(price)".
  std::string having;                   ///< Condition on columns of the result; empty: none.
  std::vector<std::string> order_by;    ///< For example "average desc", "-average" or "city".
  std::uint64_t limit = 0;              ///< Largest number of rows; 0: no limit.
  std::string into;  ///< Type of the documents that rows are stored as; empty: rows are not stored as documents.

  /// Parses a JSON object such as
  /// {"type":"listing","selection":"price > 10","group_by":["city"],"aggregates":["count()"],"having":"count > 1",
  /// "order_by":["count desc"],"limit":10,"into":"city_count"}. Only "type" is required, and not even that if
  /// `needs_type` is false (for a pass after the first). Errors: InvalidArgument that names the member, or the position
  /// in the text.
  static Result<AggregateSpec> from_json(std::string_view json, bool needs_type = true);
  std::string to_json() const;
  friend bool operator==(const AggregateSpec&, const AggregateSpec&) = default;
};

/// Splits "a,b(c,d)" into "a" and "b(c,d)": commas inside parentheses, brackets, braces and quotes do not separate.
std::vector<std::string> split_list(std::string_view text);

/// Returns the JSON text of each cell of a row, which is a JSON array as JobResults returns it. The results are views
/// of `row`. Errors: Corruption.
Result<std::vector<std::string_view>> row_cells(std::string_view row);

/// Returns the id of the document that a row is stored as. Rows with equal job name and group have equal ids.
std::string row_document_id(std::string_view name_space, std::string_view type, std::string_view job,
                            std::string_view key);

enum class AggregateFunction : std::uint8_t { Count, Sum, Avg, Min, Max, Distinct, Quantile, Histogram, Top };

/// Type of the values in a column of the result.
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

/// An aggregation compiled against the document types of a cluster.
///
/// Threading: immutable, readable from any thread. Lifetime: independent of the types it was compiled against.
class AggregatePlan {
 public:
  struct Aggregate {
    AggregateFunction function = AggregateFunction::Count;
    int input = -1;  ///< Index into inputs(); -1: count() of documents.
    /// Constant argument: the fraction of quantile, the bin width of histogram, the row count of top.
    ScalarView parameter;
    bool is_bool = false;  ///< Whether the input is a bool.
    bool is_integer = false;
  };

  /// Compiles and checks a specification. Errors: InvalidArgument, InvalidSelection, InvalidField and UnknownType; the
  /// message names the part of the specification, the column in it, the text found there and what was expected.
  static Result<std::shared_ptr<const AggregatePlan>> compile(const AggregateSpec& spec, const DocumentTypeRepo& types);

  /// Columns of the result: groups first, then aggregates.
  const std::vector<AggregateColumn>& columns() const { return columns_; }
  std::size_t group_count() const { return groups_.size(); }
  const std::vector<ValueExpression>& groups() const { return groups_; }
  /// Arguments of the aggregates; equal expressions occur once.
  const std::vector<ValueExpression>& inputs() const { return inputs_; }
  const std::vector<Aggregate>& aggregates() const { return aggregates_; }
  /// True if an expression needs the body part of documents.
  bool needs_body() const { return needs_body_; }
  bool has_having() const { return having_ != nullptr; }
  /// The selection in canonical form. Each field has its type in front, so that any part of Fjord can parse it. May be
  /// empty.
  const std::string& selection() const { return selection_; }
  std::uint64_t limit() const { return limit_; }
  bool is_ordered() const { return !order_.empty(); }

  /// Tells whether a row passes the `having` condition; true if there is none. `row` is a JSON array with one value per
  /// column. Errors: Corruption if it is not.
  Result<bool> passes_having(std::string_view row) const;
  /// Sorts rows (key and JSON array) by `order_by`, then by the values of their groups, and drops the rows beyond the
  /// limit. A second call changes nothing. Errors: Corruption.
  Status arrange(std::vector<std::pair<std::string, std::string>>& rows) const;
  Status arrange(JobRows& rows) const;

 private:
  struct Condition;
  struct Having;
  struct Order {
    std::size_t column = 0;
    bool descending = false;
  };
  friend class AggregateCompiler;
  AggregatePlan() = default;

  /// Returns the numbers of the rows that arrange() keeps, in their order. Errors: Corruption.
  Result<std::vector<std::uint32_t>> arranged(std::span<const JobRows::Row> rows) const;

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
