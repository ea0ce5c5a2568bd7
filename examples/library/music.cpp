// Feeds albums, visits them, counts them by year, and follows their changes.

#include <cstdio>
#include <string>
#include <vector>

#include <fjord/fjord.h>

constexpr const char* kSchema = "document album { field title type string { header } field year type int { header } }";

int complain(const char* what, const fjord::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.to_string().c_str());
  return 1;
}

int main(int argc, char** argv) {
  fjord::Client client = fjord::connect(argc > 1 ? argv[1] : "127.0.0.1:19110");
  const auto deployed = client.admin().deploy_schemas({kSchema});
  if (!deployed) return complain("schema", deployed.error());

  // Feed: the puts are in flight together; their results are awaited afterwards.
  std::vector<fjord::Pending<fjord::WriteResult>> puts;
  for (int number = 0; number < 1000; ++number) {
    auto album = client.new_document("id:music:album::" + std::to_string(number));
    if (!album) return complain("document", album.error());
    if (auto set = album->set("title", "Album " + std::to_string(number)); !set) return complain("title", set);
    if (auto set = album->set("year", 1990 + number % 20); !set) return complain("year", set);
    puts.push_back(client.put(*album));
  }
  for (auto& put : puts) {
    const fjord::WriteResult result = std::move(put).wait();
    if (!result) return complain("put", result.status);
  }

  // Visit: four slices at the same time.
  int visited = 0;
  fjord::Visit visit = client.visit({.selection = "album.year >= 2000", .slices = 4});
  for (const fjord::Document& album : visit) visited += album.integer("year") >= 2000 ? 1 : 0;
  if (!visit.status()) return complain("visit", visit.status());
  std::printf("%d albums since 2000\n", visited);

  // Aggregate: computed by the storage nodes.
  const fjord::AggregateResult years = client.aggregate(
      {.type = "album", .group_by = {"year"}, .aggregates = {"count()"}, .order_by = {"year desc"}, .limit = 3});
  if (!years) return complain("aggregate", years.status);
  for (const auto& row : years.rows) std::printf("%s: %s\n", to_string(row[0]).c_str(), to_string(row[1]).c_str());

  // Subscribe: first the existing documents, then each change.
  int known = 0;
  for (const fjord::Change& change : client.subscribe({.type = "album"})) {
    if (change.kind == fjord::Change::Kind::CaughtUp) break;
    ++known;
  }
  std::printf("%d albums in the copy\n", known);
}
