#include <catch2/catch.hpp>
#include <cmath>
#include <fmt/format.h>
#include <random>
#include <rapidjson/document.h>
#include <set>

#include "aggregate/aggregate_application.h"
#include "aggregate/exact_sum.h"
#include "aggregate/sketches.h"
#include "mapreduce/aggregate_world.h"
#include "task/accumulator.h"
#include "task/key_reducer.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

using test::document_of;
using test::Sale;

struct Encoded {
  EncodedDocument bytes;
  Sale sale;
};

std::vector<Encoded> random_sales(unsigned seed, int count, int cities) {
  static const auto types = test::sale_types();
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Encoded> sales;
  for (int i = 0; i < count; ++i) {
    Sale sale;
    if (below(10) != 0) sale.city = "city " + std::to_string(below(cities));
    if (below(10) != 0) sale.year = 1990 + below(40);
    const double scale[] = {0.1, 1, 1e-20, 1e30, 0.25};
    if (below(10) != 0) sale.amount = (below(2000) - 1000) * scale[below(5)];
    if (below(10) != 0) sale.cents = std::int64_t{below(1000)} * (below(3) == 0 ? 9'000'000'000'000'000 : 1) - 300;
    if (below(10) != 0) sale.paid = below(2) == 0;
    sales.push_back({encode(document_of(*types, i, sale)), sale});
  }
  return sales;
}

std::unique_ptr<Application> application_of(const AggregateSpec& spec) {
  static const auto types = test::sale_types();
  ApplicationRegistry registry;
  registry.add(aggregate_info());
  auto application = registry.create("aggregate", {{"spec", spec.to_json()}}, *types->find("sale"), types.get());
  INFO(application.status());
  REQUIRE(application);
  return std::move(*application);
}

void add(Accumulator& table, const std::vector<Encoded>& sales, std::size_t begin, std::size_t end) {
  static const auto types = test::sale_types();
  for (std::size_t i = begin; i < end; ++i) {
    const auto view = DocumentView::open(*types, sales[i].bytes.header, sales[i].bytes.body);
    REQUIRE(view);
    const Status status = table.map(*view);
    INFO(status);
    REQUIRE(status.is_ok());
  }
}

using Tuples = std::map<std::string, std::string>;

Tuples tuples_of(Accumulator& table) {
  Tuples tuples;
  const auto source = table.drain(1);
  Tuple tuple;
  while (source->next(tuple).value()) {
    REQUIRE(tuple.values.size() == 1);
    tuples[std::string(tuple.key)] = tuple.values[0];
  }
  return tuples;
}

std::map<std::string, std::string> rows_of(Application& application, Accumulator& table) {
  std::map<std::string, std::string> rows;
  const auto source = table.drain(0);
  Tuple tuple;
  while (source->next(tuple).value()) {
    const auto row = reduce_key(application, tuple);
    REQUIRE(row);
    if (*row) rows[application.key_text(tuple.key).value()] = **row;
  }
  return rows;
}

std::map<std::string, std::string> rows_of(const AggregateSpec& spec, const std::vector<Encoded>& sales) {
  const auto application = application_of(spec);
  const auto table = make_accumulator(*application);
  add(*table, sales, 0, sales.size());
  return rows_of(*application, *table);
}

AggregateSpec spec_of(std::vector<std::string> group_by, std::vector<std::string> aggregates) {
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = std::move(group_by);
  spec.aggregates = std::move(aggregates);
  return spec;
}

const std::vector<std::string> kAll = {"count()",
                                       "count(year)",
                                       "sum(cents)",
                                       "sum(amount) AS total",
                                       "avg(year)",
                                       "avg(amount)",
                                       "min(amount)",
                                       "max(city)",
                                       "distinct(cents)",
                                       "quantile(0.5,cents)",
                                       "quantile(0.9,amount) AS q90",
                                       "histogram(year,10)",
                                       "top(3,year)",
                                       "min(paid)",
                                       "sum(paid)"};

TEST_CASE("what is retracted leaves the bytes of what is left, or says that it does not know") {
  static const auto types = test::sale_types();
  const unsigned seed = GENERATE(1u, 2u, 3u);
  const int cities = GENERATE(1, 40);
  const std::vector<std::string> invertible = {"count()",   "count(year)",        "sum(cents)",  "sum(amount)",
                                               "avg(year)", "histogram(year,10)", "top(3,year)", "quantile(0.5,year)"};
  const bool all = GENERATE(true, false);
  const auto sales = random_sales(seed, 600, cities);
  const auto application = application_of(spec_of({"city"}, all ? kAll : invertible));
  std::vector<std::string> alone(sales.size());
  const auto table = make_accumulator(*application);
  const auto each = [](std::string_view tuples, const auto& f) {
    ByteReader in(tuples);
    while (in.remaining() > 0) {
      const std::string_view key = in.string();
      f(key, in.string());
    }
  };
  for (std::size_t i = 0; i < sales.size(); ++i) {
    const auto view = DocumentView::open(*types, sales[i].bytes.header, sales[i].bytes.body);
    REQUIRE(table->map_alone(*view, alone[i]).is_ok());
    each(alone[i], [&](auto key, auto value) { REQUIRE(table->merge(key, value).is_ok()); });
  }
  const auto mapped = make_accumulator(*application);
  add(*mapped, sales, 0, sales.size());
  REQUIRE(tuples_of(*table) == tuples_of(*mapped));

  std::set<std::string> doubtful;
  const std::size_t taken = GENERATE(20u, 300u, 590u);
  for (std::size_t i = 0; i < taken; ++i) {
    each(alone[i], [&](auto key, auto value) {
      if (!doubtful.contains(std::string(key)) && !table->retract(key, value)) doubtful.emplace(key);
    });
  }
  const auto rest = make_accumulator(*application);
  add(*rest, sales, taken, sales.size());
  const Tuples left = tuples_of(*rest);
  const Tuples found = tuples_of(*table);
  for (const auto& [key, value] : found) {
    if (doubtful.contains(key)) continue;
    REQUIRE(left.contains(key));
    CHECK(left.at(key) == value);
  }
  for (const auto& [key, value] : left) CHECK(found.contains(key));
  if (all) return;
  // No group is in doubt: count() shows which groups are empty, and these start afresh.
  CHECK(doubtful.empty());
  CHECK(found.size() == left.size());
  for (std::size_t i = 0; i < taken; ++i) {
    each(alone[i], [&](auto key, auto value) { REQUIRE(table->merge(key, value).is_ok()); });
  }
  CHECK(tuples_of(*table) == tuples_of(*mapped));
}

TEST_CASE("partial results are the same bytes however documents are split and partials are merged") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u);
  const int cities = GENERATE(1, 7);
  // With one city the sketches exceed the size up to which they are exact.
  const auto sales = random_sales(seed, 4000, cities);
  const auto application = application_of(spec_of({"city"}, kAll));
  const auto whole = make_accumulator(*application);
  add(*whole, sales, 0, sales.size());
  const Tuples expected = tuples_of(*whole);
  CHECK(expected.size() == static_cast<std::size_t>(cities) + 1);  // One more group has the documents without a city.

  std::mt19937 random(seed);
  std::vector<Encoded> shuffled = sales;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  std::vector<std::unique_ptr<Accumulator>> parts;
  for (std::size_t begin = 0; begin < shuffled.size();) {
    const std::size_t end = std::min(shuffled.size(), begin + 1 + random() % 900);
    parts.push_back(make_accumulator(*application));
    add(*parts.back(), shuffled, begin, end);
    begin = end;
  }
  while (parts.size() > 1) {
    const std::size_t from = random() % parts.size();
    auto part = std::move(parts[from]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(from));
    Accumulator& into = *parts[random() % parts.size()];
    for (const auto& [key, value] : tuples_of(*part)) REQUIRE(into.merge(key, value).is_ok());
  }
  CHECK(tuples_of(*parts[0]) == expected);
  CHECK(rows_of(*application, *parts[0]) == rows_of(*application, *whole));
}

/// The values of one group, computed in the simplest way.
struct Reference {
  std::int64_t count = 0;
  std::vector<std::int64_t> years;
  __int128 cents = 0;
  std::vector<double> amounts;
  std::set<std::int64_t> distinct_cents;
};

TEST_CASE("count, sum, avg, min, max, distinct, quantile and top agree with a plain computation") {
  const auto sales = random_sales(11, 1500, 9);
  std::map<std::string, Reference> expected;
  for (const Encoded& one : sales) {
    Reference& group = expected[one.sale.city ? "[\"" + *one.sale.city + "\"]" : "[null]"];
    ++group.count;
    if (one.sale.year) group.years.push_back(*one.sale.year);
    if (one.sale.cents) group.cents += *one.sale.cents;
    if (one.sale.cents) group.distinct_cents.insert(*one.sale.cents);
    if (one.sale.amount) group.amounts.push_back(*one.sale.amount);
  }
  const auto rows =
      rows_of(spec_of({"city"}, {"count()", "count(year)", "sum(cents)", "avg(year)", "min(amount)", "max(amount)",
                                 "distinct(cents)", "quantile(0.25,amount)", "quantile(1,year)", "top(2,year)"}),
              sales);
  REQUIRE(rows.size() == expected.size());
  for (auto& [key, group] : expected) {
    INFO(key << " " << rows.at(key));
    std::sort(group.amounts.begin(), group.amounts.end());
    std::sort(group.years.begin(), group.years.end());
    rapidjson::Document row;
    row.Parse<rapidjson::kParseFullPrecisionFlag>(rows.at(key).c_str());
    REQUIRE(row.IsArray());
    CHECK(row[1].GetInt64() == group.count);
    CHECK(row[2].GetInt64() == static_cast<std::int64_t>(group.years.size()));
    CHECK(rows.at(key).find("," + int128_text(group.cents) + ",") != std::string::npos);
    std::int64_t years = 0;
    for (const std::int64_t year : group.years) years += year;
    CHECK(row[4].GetDouble() == static_cast<double>(years) / static_cast<double>(group.years.size()));
    CHECK(row[5].GetDouble() == group.amounts.front());
    CHECK(row[6].GetDouble() == group.amounts.back());
    CHECK(row[7].GetUint64() == group.distinct_cents.size());
    const auto rank = static_cast<std::size_t>(std::ceil(0.25 * static_cast<double>(group.amounts.size())));
    CHECK(row[8].GetDouble() == group.amounts[rank - 1]);
    CHECK(row[9].GetInt64() == group.years.back());
    std::map<std::int64_t, std::int64_t> counts;
    for (const std::int64_t year : group.years) ++counts[year];
    std::vector<std::pair<std::int64_t, std::int64_t>> top;  // Pairs (-count, year).
    for (const auto& [year, n] : counts) top.emplace_back(-n, year);
    std::sort(top.begin(), top.end());
    REQUIRE(row[10].Size() == 2);
    for (rapidjson::SizeType i = 0; i < 2; ++i) {
      CHECK(row[10][i]["value"].GetInt64() == top[i].second);
      CHECK(row[10][i]["count"].GetInt64() == -top[i].first);
    }
  }
}

TEST_CASE("a group without values of an argument has null, and counts of it 0") {
  const auto types = test::sale_types();
  const std::vector<Encoded> sales = {{encode(document_of(*types, 1, {})), {}}};
  const auto rows = rows_of(spec_of({"city"}, kAll), sales);
  REQUIRE(rows.size() == 1);
  CHECK(rows.at("[null]") == "[null,1,0,null,null,null,null,null,null,0,null,null,[],[],null,null]");
}

TEST_CASE("an absent value, a text and a bool are groups of their own; equal numbers are one") {
  const auto types = test::sale_types();
  std::vector<Encoded> sales;
  const auto put = [&](const Sale& sale) { sales.push_back({encode(document_of(*types, 1, sale)), sale}); };
  put({"null", 5, 5.0, {}, true});
  put({{}, 5, 5.5, {}, false});
  put({"", 6, -0.0, {}, {}});
  put({"", 6, 0.0, {}, {}});
  CHECK(rows_of(spec_of({"city"}, {"count()"}), sales) ==
        std::map<std::string, std::string>{
            {"[null]", "[null,1]"}, {"[\"\"]", "[\"\",2]"}, {"[\"null\"]", "[\"null\",1]"}});
  CHECK(rows_of(spec_of({"paid"}, {"count()"}), sales).contains("[true]"));
  CHECK(rows_of(spec_of({"amount"}, {"count()"}), sales) ==
        std::map<std::string, std::string>{{"[5]", "[5,1]"}, {"[5.5]", "[5.5,1]"}, {"[0]", "[0,2]"}});
  CHECK(rows_of(spec_of({"year / 2", "city.lowercase()"}, {}), sales).contains("[2.5,\"null\"]"));
  CHECK(rows_of(spec_of({}, {"count()"}), sales) == std::map<std::string, std::string>{{"[]", "[4]"}});
}

TEST_CASE("beyond what is exact, distinct and quantile say how good they are, and are that good") {
  DistinctSketch distinct;
  QuantileSketch quantile;
  for (int i = 1; i <= 100'000; ++i) {
    ScalarView value;
    value.kind = ScalarView::Kind::Integer;
    value.integer = i * 7;
    distinct.add(value);
    quantile.add(value);
    if (i == 1024) CHECK(distinct.is_exact());
    if (i == 1025) CHECK_FALSE(distinct.is_exact());
    if (i == 1024 || i == 5000 || i == 100'000) {
      CHECK(std::fabs(static_cast<double>(distinct.estimate()) - i) <= 3 * DistinctSketch::kError * i);
    }
  }
  CHECK_FALSE(quantile.is_exact());
  for (const double p : {0.0, 0.01, 0.5, 0.99, 1.0}) {
    const double exact = 7 * std::max(1.0, std::ceil(p * 100'000));
    CHECK(std::fabs(as_double(quantile.quantile(p)) - exact) <= QuantileSketch::kRelativeError * exact);
  }
}

TEST_CASE("an estimate in a row is an object with the number and its error") {
  static const auto types = test::sale_types();
  constexpr int kValues = 2000;  // More values than either sketch counts exactly.
  std::vector<Encoded> sales;
  for (int i = 1; i <= kValues; ++i) {
    const Sale sale{.cents = i};
    sales.push_back({encode(document_of(*types, i, sale)), sale});
  }
  const auto rows = rows_of(spec_of({}, {"distinct(cents)", "quantile(0.5,cents)"}), sales);
  REQUIRE(rows.size() == 1);
  INFO(rows.at("[]"));
  rapidjson::Document row;
  row.Parse(rows.at("[]").c_str());
  REQUIRE_FALSE(row.HasParseError());
  REQUIRE(row.IsArray());
  REQUIRE(row.Size() == 2);
  const auto check_cell = [&](const rapidjson::Value& cell, const char* error_name, double error, double exact) {
    REQUIRE(cell.IsObject());
    REQUIRE(cell.MemberCount() == 2);
    REQUIRE(cell.HasMember("estimate"));
    REQUIRE(cell.HasMember(error_name));
    CHECK(cell[error_name].GetDouble() == error);
    CHECK(std::fabs(cell["estimate"].GetDouble() - exact) <= 3 * error * exact);
  };
  check_cell(row[0], "standard_error", DistinctSketch::kError, kValues);
  check_cell(row[1], "relative_error", QuantileSketch::kRelativeError, kValues / 2);
}

TEST_CASE("quantiles of negative and very large numbers keep their relative error") {
  QuantileSketch sketch;
  std::vector<double> values;
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    const double value = std::ldexp(static_cast<double>(random()) - 2e9, static_cast<int>(random() % 200) - 100);
    values.push_back(value);
    ScalarView scalar;
    scalar.kind = ScalarView::Kind::Double;
    scalar.number = value;
    sketch.add(canonical(scalar));
  }
  std::sort(values.begin(), values.end());
  for (std::size_t rank : {1u, 100u, 2500u, 4999u, 5000u}) {
    const double exact = values[rank - 1];
    const double found = as_double(sketch.quantile(static_cast<double>(rank) / 5000));
    CHECK(std::fabs(found - exact) <= QuantileSketch::kRelativeError * std::fabs(exact) * 1.0001);
  }
}

TEST_CASE("a quantile of a decimal part is exact") {
  // DuckDB: SELECT quantile_disc(l, P) FROM range(1, 101) t(l)
  QuantileSketch sketch;
  for (int i = 1; i <= 100; ++i) {
    ScalarView scalar;
    scalar.kind = ScalarView::Kind::Integer;
    scalar.integer = i;
    sketch.add(scalar);
  }
  for (int percent = 1; percent <= 100; ++percent) {
    INFO(percent);
    const double part = std::stod(fmt::format("{}e-2", percent));
    CHECK(sketch.quantile(part).integer == percent);
    CHECK(sketch.quantile(std::stod(fmt::format("{}1e-3", percent - 1))).integer == percent);
  }
  CHECK(sketch.quantile(0).integer == 1);
  CHECK(sketch.quantile(1e-300).integer == 1);
  CHECK(sketch.quantile(0.999999999999999).integer == 100);
}

TEST_CASE("bins of a decimal width have the edges that people write") {
  HistogramCounts counts;
  ScalarView width;
  width.kind = ScalarView::Kind::Double;
  width.number = 0.1;
  for (int tenths = -10; tenths <= 10; ++tenths) {
    ScalarView value;
    value.kind = ScalarView::Kind::Double;
    value.number = std::stod(fmt::format("{}e-1", tenths));
    REQUIRE(counts.add(canonical(value), width));
  }
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  counts.write(json, width);
  rapidjson::Document bins;
  bins.Parse<rapidjson::kParseFullPrecisionFlag>(buffer.GetString());
  REQUIRE(bins.Size() == 21);
  for (int i = 0; i < 21; ++i) {
    const auto& bin = bins[static_cast<rapidjson::SizeType>(i)];
    CHECK(bin["count"].GetInt() == 1);
    CHECK(bin["from"].GetDouble() == std::stod(fmt::format("{}e-1", i - 10)));
    CHECK(bin["to"].GetDouble() == std::stod(fmt::format("{}e-1", i - 9)));
  }
}

TEST_CASE("a histogram has the bins that the values are in") {
  const auto types = test::sale_types();
  std::vector<Encoded> sales;
  for (const int year : {-11, -10, -1, 0, 9, 10, 10}) {
    sales.push_back({encode(document_of(*types, 1, {.year = year})), {}});
  }
  CHECK(rows_of(spec_of({}, {"histogram(year,10)"}), sales).at("[]") ==
        R"([[{"from":-20,"to":-10,"count":1},{"from":-10,"to":0,"count":2},{"from":0,"to":10,"count":2},)"
        R"({"from":10,"to":20,"count":2}]])");
  CHECK(rows_of(spec_of({}, {"histogram(year / 10,0.5)"}), sales)
            .at("[]")
            .starts_with(R"([[{"from":-1.5,"to":-1.0,"count":1},{"from":-1.0,"to":-0.5,"count":1})"));
}

TEST_CASE("having compares sums of more than 64 bits by their value") {
  const auto types = test::sale_types();
  std::vector<Encoded> sales;
  for (const std::int64_t cents : {INT64_MAX, INT64_MAX, std::int64_t{-3}}) {
    Sale sale;
    sale.city = cents > 0 ? "large" : "small";
    sale.cents = cents;
    sales.push_back({encode(document_of(*types, 1, sale)), sale});
  }
  const auto kept = [&](const std::string& having) {
    AggregateSpec spec = spec_of({"city"}, {"sum(cents) AS n"});
    spec.having = having;
    std::string cities;
    for (const auto& [key, row] : rows_of(spec, sales)) cities += key;
    return cities;
  };
  // Python: 2 * (2**63 - 1) = 18446744073709551614
  CHECK(kept("n > 1e19") == R"(["large"])");
  CHECK(kept("n > 9223372036854775807") == R"(["large"])");
  CHECK(kept("n == 9223372036854775807").empty());
  CHECK(kept("n < 1.9e19 and n > 1.8e19") == R"(["large"])");
  CHECK(kept("n > 1.9e19").empty());
  CHECK(kept("n < 0") == R"(["small"])");
}

TEST_CASE("having is a condition on columns") {
  const auto sales = random_sales(3, 500, 20);
  AggregateSpec spec = spec_of({"city"}, {"count() AS n", "avg(amount)"});
  const auto all = rows_of(spec, sales);
  spec.having = "n > 20 and city != null";
  const auto some = rows_of(spec, sales);
  CHECK(!some.empty());
  CHECK(some.size() < all.size());
  for (const auto& [key, row] : all) {
    rapidjson::Document json;
    json.Parse(row.c_str());
    CHECK(some.contains(key) == (json[1].GetInt() > 20 && !json[0].IsNull()));
  }
  // A column can also be named by the text that it is computed from, where that is not part of another word or text.
  for (const char* same : {"count() > 20 and city != null", "20 < count( ) and not (city == null)",
                           "(count()>20) and city != \"count()\" and avg(amount) == avg_amount and city != null"}) {
    CAPTURE(same);
    spec.having = same;
    CHECK(rows_of(spec, sales) == some);
  }
}

TEST_CASE("rows are arranged by columns, then by their groups, and cut off") {
  const auto types = test::sale_types();
  AggregateSpec spec = spec_of({"city", "year"}, {"sum(amount) AS total"});
  spec.order_by = {"total desc", "-year"};
  spec.limit = 4;
  const auto plan = AggregatePlan::compile(spec, *types);
  REQUIRE(plan);
  using Rows = std::vector<std::pair<std::string, std::string>>;
  Rows rows = {{"a", R"(["b",1,2.5])"}, {"b", R"(["a",10,3])"},   {"c", R"(["c",9,3])"},
               {"d", R"([null,9,3])"},  {"e", R"(["x",1,null])"}, {"f", R"(["x",1,"Infinity"])"}};
  const Rows expected = {
      {"f", R"(["x",1,"Infinity"])"}, {"b", R"(["a",10,3])"}, {"d", R"([null,9,3])"}, {"c", R"(["c",9,3])"}};
  REQUIRE((*plan)->arrange(rows).is_ok());
  CHECK(rows == expected);
  REQUIRE((*plan)->arrange(rows).is_ok());
  CHECK(rows == expected);
  Rows broken = {{"a", "[1]"}};
  CHECK((*plan)->arrange(broken).code() == StatusCode::Corruption);

  JobRows packed = {{"a", R"(["b",1,2.5])"}, {"b", R"(["a",10,3])"},   {"c", R"(["c",9,3])"},
                    {"d", R"([null,9,3])"},  {"e", R"(["x",1,null])"}, {"f", R"(["x",1,"Infinity"])"}};
  JobRows kept;
  for (const auto& [key, row] : expected) kept.add(key, row);
  REQUIRE((*plan)->arrange(packed).is_ok());
  CHECK(packed == kept);
  packed = {{"a", "[1]"}};
  CHECK((*plan)->arrange(packed).code() == StatusCode::Corruption);
}

TEST_CASE("what is wrong with a specification is said, with where and what was expected") {
  const auto types = test::sale_types();
  const auto error_of = [&](const AggregateSpec& spec) {
    const auto plan = AggregatePlan::compile(spec, *types);
    REQUIRE_FALSE(plan.has_value());
    return plan.error().message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(error_of(spec_of({"town"}, {})),
      "group-by \"town\": column 1: 'town' is not a field of the document type 'sale'");
  has(error_of(spec_of({"city +"}, {})), "column 7");
  has(error_of(spec_of({"tags"}, {})), "not a single value");
  has(error_of(spec_of({"by"}, {})), "not a single value");
  has(error_of(spec_of({"id.bucket"}, {})), "not a single value");
  has(error_of(spec_of({"city == 'x'"}, {})), "column 6: unexpected '==': expected '+'");
  has(error_of(spec_of({"now()"}, {})), "now()");
  has(error_of(spec_of({}, {"median(year)"})), "unknown function \"median\"");
  has(error_of(spec_of({}, {"sum(city)"})), "sale.city is a text, expected a number");
  has(error_of(spec_of({}, {"sum()"})), "0 arguments, expected 1");
  has(error_of(spec_of({}, {"quantile(2,year)"})), "\"2\": expected a number from 0 to 1");
  has(error_of(spec_of({}, {"histogram(year,0)"})), "expected the width");
  has(error_of(spec_of({}, {"top(0,year)"})), "expected a number from 1");
  has(error_of(spec_of({}, {"sum(year"})), "expected count()");
  has(error_of(spec_of({}, {})), "nothing to compute");
  has(error_of(spec_of({"city", "sale.city"}, {})), "two columns have the name \"city\"");
  has(error_of(spec_of({"city AS not"}, {})), "cannot be the name");
  AggregateSpec spec = spec_of({"city"}, {"count()", "top(3,year) AS best"});
  spec.order_by = {"counts"};
  has(error_of(spec), "there is no column \"counts\": expected city, count, best");
  spec.order_by = {"best"};
  has(error_of(spec), "several values has no order");
  spec.order_by = {};
  spec.having = "count > > 1";
  has(error_of(spec), "having \"count > > 1\": column 9");
  spec.having = "counted > 1";
  has(error_of(spec), "(columns: city, count, best)");
  spec.having = "sum(amount) > 1";
  has(error_of(spec), "unknown function 'sum'");
  spec.having = "count(";
  has(error_of(spec), "having \"count(\"");
  spec.having = "";
  spec.selection = "year >";
  has(error_of(spec), "selection, column 7");
}

TEST_CASE("names of columns are given or follow from what is computed") {
  const auto types = test::sale_types();
  AggregateSpec spec = spec_of({"sale.city", "year / 10 as decade", "kind=paid", "id", "by.name", "scores{\"a, b\"}"},
                               {"count()", "quantile(0.5, cents)", "best = max(amount)", "Sum(cents) AS total"});
  spec.selection = "year > 1990 and paid";
  spec.order_by = {"count()", "quantile(0.5,cents)"};
  const auto plan = AggregatePlan::compile(spec, *types);
  INFO(plan.status());
  REQUIRE(plan);
  std::vector<std::string> names;
  for (const AggregateColumn& column : (*plan)->columns()) names.push_back(column.name);
  CHECK(names == std::vector<std::string>{"city", "decade", "kind", "id_", "by_name", "scores_a_b", "count",
                                          "quantile_0_5_cents", "best", "total"});
  CHECK((*plan)->selection() == "sale.year > 1990 and sale.paid");
  CHECK_FALSE((*plan)->needs_body());
  CHECK((*AggregatePlan::compile(spec_of({"note"}, {}), *types))->needs_body());
}

TEST_CASE("a specification reads back from JSON, and what JSON does not fit is named") {
  AggregateSpec spec = spec_of({"city"}, {"count()", "top(3,city)"});
  spec.selection = "year > 3";
  spec.having = "count > 1";
  spec.order_by = {"count desc"};
  spec.limit = 7;
  spec.into = "total";
  const auto back = AggregateSpec::from_json(spec.to_json());
  REQUIRE(back);
  CHECK(*back == spec);
  CHECK(AggregateSpec::from_json(R"x({"type":"sale","group_by":"a, b(c,d)"})x")->group_by ==
        std::vector<std::string>{"a", "b(c,d)"});
  const auto error = [](const char* json) { return AggregateSpec::from_json(json).status().message(); };
  CHECK(error(R"({"type":"sale",})").find("no JSON at byte 16") != std::string::npos);
  CHECK(error("[]").find("expected a JSON object") != std::string::npos);
  CHECK(error(R"({"type":3})").find("\"type\": expected a text") != std::string::npos);
  CHECK(error(R"({"type":"a","groupby":[]})").find("unknown member \"groupby\"") != std::string::npos);
  CHECK(error(R"({"type":"a","limit":-1})").find("expected a number") != std::string::npos);
  CHECK(error(R"({})").find("\"type\"") != std::string::npos);
}

TEST_CASE("lists are split at commas that stand outside of everything") {
  using List = std::vector<std::string>;
  CHECK(split_list("") == List{});
  CHECK(split_list(" a , b ") == List{"a", "b"});
  CHECK(split_list(R"(f(a,b), x{"q,r"}, 'it,s')") == List{"f(a,b)", R"(x{"q,r"})", "'it,s'"});
  CHECK(split_list("a,") == List{"a", ""});
}

TEST_CASE("malformed partial results are refused, whatever bytes they are") {
  const auto application = application_of(spec_of({"city"}, kAll));
  const auto table = make_accumulator(*application);
  const auto sales = random_sales(9, 3000, 1);
  add(*table, sales, 0, sales.size());
  const Tuples tuples = tuples_of(*table);
  std::mt19937 random(1);
  int refused = 0;
  for (const auto& [key, value] : tuples) {
    for (std::size_t cut = 0; cut < value.size(); cut += 1 + value.size() / 300) {
      const auto other = make_accumulator(*application);
      CHECK(other->merge(key, std::string_view(value).substr(0, cut)).code() == StatusCode::Corruption);
    }
    CHECK_FALSE(make_accumulator(*application)->merge(key, value + "x").is_ok());
    for (int i = 0; i < 1000; ++i) {
      std::string bytes = value;
      for (auto n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
      const auto other = make_accumulator(*application);
      if (!other->merge(key, bytes)) {
        ++refused;
        continue;
      }
      for (const auto& [k, v] : tuples_of(*other)) REQUIRE(make_accumulator(*application)->merge(k, v).is_ok());
      rows_of(*application, *other);
    }
  }
  CHECK(refused > 100);
  REQUIRE(table->merge(std::string("\x07"), tuples.begin()->second).is_ok());
  CHECK(application->key_text("\x07").status().code() == StatusCode::Corruption);
}

TEST_CASE("a table gives its memory back and can be used again") {
  const auto application = application_of(spec_of({"cents"}, {"distinct(year)", "max(city)", "sum(amount)"}));
  const auto table = make_accumulator(*application);
  const auto sales = random_sales(21, 2000, 5);
  const std::size_t empty = table->bytes();
  add(*table, sales, 0, 1000);
  CHECK(table->bytes() > empty + 1000 * 16);
  table->clear();
  CHECK(table->bytes() == empty);
  CHECK(table->groups() == 0);
  add(*table, sales, 0, sales.size());
  const auto fresh = make_accumulator(*application);
  add(*fresh, sales, 0, sales.size());
  CHECK(tuples_of(*table) == tuples_of(*fresh));
}

TEST_CASE("a histogram or a top of too many values says so") {
  const auto types = test::sale_types();
  const std::string function = GENERATE("histogram(cents,1)", "top(3,cents)");
  const auto application = application_of(spec_of({}, {function}));
  const auto table = make_accumulator(*application);
  Status status;
  std::int64_t n = 0;
  for (; status && n < 70'000; ++n) {
    const EncodedDocument bytes = encode(document_of(*types, 1, {.cents = n}));
    status = table->map(*DocumentView::open(*types, bytes.header, bytes.body));
  }
  CHECK(n == 65537);
  CHECK(status.code() == StatusCode::TooLarge);
}

}  // namespace
}  // namespace fjord::mapreduce
