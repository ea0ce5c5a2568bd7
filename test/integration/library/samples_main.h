// Runs the samples of docs/clients/cpp.md and README.md on a cluster with a few documents. library_test.py puts their
// calls into `run_samples`, and the sample that never ends last.

std::atomic<int> complaints = 0;
std::atomic<int> documents_used = 0;
std::atomic<int> changes_stored = 0;
std::atomic<bool> exits_at_save = false;
std::atomic<int> saved = 0;

void use(const fjord::Document&) { ++documents_used; }
void use(const fjord::SearchPlace&) {}
void complain(const fjord::Status& status) {
  ++complaints;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
}
std::string load() { return {}; }
void store(const fjord::Change&) { ++changes_stored; }
void forget(const std::string&) {}
void copy_everything_again() { complain({fjord::StatusCode::Unknown, "nothing was dropped"}); }
std::string changed(const std::string&) { return R"({"price": 4})"; }

/// Nothing is destroyed, as the coroutines of two samples still use what they were given.
[[noreturn]] void end() {
  std::printf(
      "%d complaints, %s\n", complaints.load(),
      documents_used > 0 && changes_stored > 0 && saved > 0 ? "all samples did something" : "something is missing");
  std::fflush(stdout);
  std::_Exit(complaints == 0 ? 0 : 1);
}
void save(const std::string&) {
  ++saved;
  if (exits_at_save) end();
}

void run_samples(fjord::Client& client);

int main(int, char** argv) {
  static fjord::Client client = fjord::connect(argv[1]);
  const auto deployed = client.admin().deploy_schemas(
      {"document item { field name type string { header } field price type int { header } field dear type bool { "
       "header }"
       " field sku type string { header } field text type string { header } }",
       "document music { field title type string { header } field year type int { header } }",
       "document visit { field city type string { header } field cost type int { header } }",
       "document listing { field city type string { header } field price type int { header } }"});
  if (!deployed) complain(deployed.error());
  for (int n = 0; n < 2000; ++n) {
    const std::string name = std::to_string(n);
    const auto city = R"({"city": "c)" + std::to_string(n % 3) + R"(", "price": )" + name + "}";
    for (const auto& put : {client.put_json("id:shop:music::" + name, R"({"title": "t", "year": 2000})").wait(),
                            client.put_json("id:shop:listing::" + name, city).wait(),
                            client.put_json("id:shop:item::" + name, R"({"text": "one two", "price": 101})").wait()}) {
      if (!put) complain(put.status);
    }
  }
  std::ofstream("items.csv") << "sku,name,price\na,tea,3\nb,bread,4\n";
  run_samples(client);
}
