// The built-in applications except fieldstats. The first four are those of the experiments that the default settings of
// jobs and visitors come from [VDS 2007, appendices A to D].

#include "applications.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "aggregate/aggregate_application.h"
#include "fjord/common/coding.h"

namespace fjord::mapreduce {
namespace {

/// Costs `iterations` square roots per document. The result is used, so that the compiler cannot remove the loop.
class SquareRoots {
 public:
  Status configure(const ApplicationParameters& parameters) {
    FJORD_TRY_ASSIGN(iterations_, parameters.integer("iterations", 0, std::numeric_limits<std::int64_t>::max()));
    return Status::ok();
  }
  void compute(const Emitter& emitter) {
    constexpr std::int64_t kBetweenLooks = 1'000'000;
    double sum = 0;
    for (std::int64_t done = 0; done < iterations_ && !emitter.cancelled();) {
      const std::int64_t end = std::min(iterations_, done + kBetweenLooks);
      for (; done < end; ++done) sum += std::sqrt(static_cast<double>(done));
    }
    sink_ = sum;
  }

 private:
  std::int64_t iterations_ = 0;
  volatile double sink_ = 0;  // the compiler must keep a volatile write
};

class Noop final : public Application {
 public:
  Status configure(const ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
  Status map(const DocumentView&, Emitter&) override { return Status::ok(); }
  Status reduce(std::string_view, std::span<const std::string_view>, ResultEmitter&) override { return Status::ok(); }
};

class HeavyCpu final : public Application {
 public:
  Status configure(const ApplicationParameters& parameters, const DocumentType&) override {
    return roots_.configure(parameters);
  }
  Status map(const DocumentView&, Emitter& emitter) override {
    roots_.compute(emitter);
    return Status::ok();
  }
  Status reduce(std::string_view, std::span<const std::string_view>, ResultEmitter&) override { return Status::ok(); }

 private:
  SquareRoots roots_;
};

/// Counts documents by the text of a field. A tuple's value is a count in eight bytes.
class CityCount : public Application, public ValueFunctions {
 public:
  Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
    FJORD_TRY_ASSIGN(field_, scalar_field(type, parameters.text("field")));
    values_ = values_of({&field_, 1}, type, parameters.types());
    return Status::ok();
  }
  ValueFunctions* by_values() override { return values_.empty() ? nullptr : this; }
  std::span<const ValueExpression> values() const override { return values_; }
  void map_values(std::span<const ScalarView> values, Emitter& emitter) override {
    if (values[0].kind != ScalarView::Kind::Absent) emitter.emit(value_text(values[0], *field_, scratch_), encode(1));
  }
  Status map(const DocumentView& document, Emitter& emitter) override {
    if (const auto value = document.field(*field_)) emitter.emit(scalar_text(*value, scratch_), encode(1));
    return Status::ok();
  }
  bool needs_body() const override { return !field_->in_header; }
  bool combine(std::string_view, std::string& into, std::string_view value) override {
    store_fixed(into.data(), decode(into) + decode(value));
    return true;
  }
  Status reduce(std::string_view, std::span<const std::string_view> values, ResultEmitter& result) override {
    std::uint64_t count = 0;
    for (const std::string_view value : values) count += decode(value);
    result.emit(std::to_string(count));
    return Status::ok();
  }

 private:
  std::string_view encode(std::uint64_t count) {
    store_fixed(encoded_, count);
    return {encoded_, sizeof(encoded_)};
  }
  static std::uint64_t decode(std::string_view value) {
    return value.size() == 8 ? load_fixed<std::uint64_t>(value.data()) : 0;
  }

  const Field* field_ = nullptr;
  std::vector<ValueExpression> values_;  ///< Empty: documents are needed.
  std::string scratch_;
  char encoded_[8] = {};
};

class HeavyCity final : public CityCount {
 public:
  Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
    FJORD_TRY(roots_.configure(parameters));
    return CityCount::configure(parameters, type);
  }
  ValueFunctions* by_values() override { return nullptr; }
  Status map(const DocumentView& document, Emitter& emitter) override {
    roots_.compute(emitter);
    return CityCount::map(document, emitter);
  }

 private:
  SquareRoots roots_;
};

}  // namespace

std::vector<ValueExpression> values_of(std::span<const Field* const> fields, const DocumentType& type,
                                       const DocumentTypeRepo* types) {
  std::vector<ValueExpression> values;
  for (const Field* field : fields) {
    const TypeTag tag = field->type->tag();
    if (types == nullptr || tag == TypeTag::Float || tag == TypeTag::Double) return {};
    auto value = ValueExpression::compile(type.name() + "." + field->name, *types, type);
    if (!value) return {};
    values.push_back(std::move(*value));
  }
  return values;
}

std::string_view value_text(const ScalarView& value, const Field& field, std::string& scratch) {
  if (value.kind == ScalarView::Kind::String) return value.string;
  if (field.type->tag() == TypeTag::Bool) return value.integer != 0 ? "true" : "false";
  scratch = std::to_string(value.integer);
  return scratch;
}

void add_builtin_applications(ApplicationRegistry& registry) {
  const ParameterInfo iterations{"iterations", "Square roots computed for each document.", "40000000"};
  const ParameterInfo field{"field", "The field whose values are counted: a string, number or bool.", "city"};
  registry.add({"noop", "Reads every document and does nothing with it: the cost of visiting. No results.", {}, [] {
                  return std::make_unique<Noop>();
                }});
  registry.add(
      {"heavycpu", "Computes for each document and gives no results: the cost of a map function.", {iterations}, [] {
         return std::make_unique<HeavyCpu>();
       }});
  registry.add({"citycount",
                "Counts documents by the value of a field. One result a value: the number of documents with it. "
                "Documents without the field are not counted.",
                {field},
                [] { return std::make_unique<CityCount>(); }});
  registry.add({"heavycity", "citycount with the computation of heavycpu.", {iterations, field}, [] {
                  return std::make_unique<HeavyCity>();
                }});
  registry.add(fieldstats_info());
  registry.add(aggregate_info());
}

}  // namespace fjord::mapreduce
