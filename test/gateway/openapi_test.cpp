// Checks that openapi.yaml and the table of the router name the same paths, methods and parameters.

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include "http/router.h"

namespace fjord::gateway {
namespace {

/// By operation, such as "GET /cluster/v1/state/history": the names of its query parameters.
using Operations = std::map<std::string, std::set<std::string>>;

std::size_t indent_of(const std::string& line) { return line.find_first_not_of(' '); }

/// Returns the part of a line behind `word`, up to one of `ends`; empty if the word is not there.
std::string behind(const std::string& line, const std::string& word, const char* ends) {
  const std::size_t at = line.find(word);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + word.size();
  return line.substr(begin, line.find_first_of(ends, begin) - begin);
}

/// Reads openapi.yaml; it knows only the few forms of YAML that the file uses.
class Description {
 public:
  explicit Description(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) lines_.push_back(line);
    read_components();
    read_paths();
  }

  Operations operations;

 private:
  /// Finds the names of the parameters of queries among the components.
  void read_components() {
    std::string component;
    std::string name;
    for (const std::string& line : lines_) {
      if (indent_of(line) == 4) component = line.substr(4, line.find(':') - 4);
      if (indent_of(line) == 6 && line.find("      name: ") == 0) name = line.substr(12);
      if (line == "      in: query") queries_[component] = name;
    }
  }

  void read_paths() {
    std::string path;
    std::string operation;
    std::string name;
    std::set<std::string> shared;  // Parameters of all operations at the path, which come before these.
    bool is_inside = false;
    for (const std::string& line : lines_) {
      if (indent_of(line) == 0) is_inside = line == "paths:";
      if (!is_inside) continue;
      if (indent_of(line) == 2) {
        path = line.substr(2, line.size() - 3);
        shared.clear();
        operation.clear();
      }
      if (indent_of(line) == 4) {
        operation = operation_of(line.substr(4, line.find(':') - 4), path);
        if (!operation.empty()) operations[operation] = shared;
      }
      if (const std::string used = behind(line, "#/components/parameters/", "\""); queries_.contains(used)) {
        (operation.empty() ? shared : operations[operation]).insert(queries_[used]);
      }
      if (operation.empty()) continue;
      if (const std::string given = behind(line, "- name: ", " "); !given.empty()) name = given;
      if (line == "          in: query") operations[operation].insert(name);
    }
  }

  static std::string operation_of(std::string method, const std::string& path) {
    if (method == "parameters") return {};
    for (char& c : method) c = static_cast<char>(std::toupper(c));
    return method + " " + path;
  }

  std::vector<std::string> lines_;
  std::map<std::string, std::string> queries_;
};

class NoThreads final : public VisitThreads {
 public:
  bool run(std::function<void()>) override { return false; }
  bool run_stream(std::function<void()>) override { return false; }
  bool is_ending() const override { return false; }
};

TEST_CASE("openapi.yaml names the routes and their parameters", "[gateway]") {
  Client client = connect("127.0.0.1:1");
  NoThreads threads;
  MetricRegistry metrics;
  const Router router(client, threads, metrics, true, {.addresses = "127.0.0.1:1", .metrics_shown = {}});
  Operations routes;
  for (const RouteTable::Name& name : router.routes()) {
    CHECK_FALSE(routes.contains(name.method + " " + name.path));
    routes[name.method + " " + name.path] = {name.parameters.begin(), name.parameters.end()};
  }
  const Operations described = Description(openapi_text()).operations;
  for (const auto& [operation, parameters] : routes) {
    INFO(operation);
    REQUIRE(described.contains(operation));
    CHECK(described.at(operation) == parameters);
  }
  for (const auto& [operation, parameters] : described) {
    INFO(operation);
    CHECK(routes.contains(operation));
  }
  CHECK(described.size() > 20);
}

TEST_CASE("the group of paths is a word for metrics", "[gateway]") {
  CHECK(Router::group_of("/cluster/v1/nodes/storage.1") == "cluster");
  CHECK(Router::group_of("/document/v1/a/b/docid/c") == "document");
  CHECK(Router::group_of("/metrics") == "state");
  for (const char* target : {"", "/", "x", "/cluster", "/absent/v1/x"}) CHECK(Router::group_of(target) == "other");
}

}  // namespace
}  // namespace fjord::gateway
