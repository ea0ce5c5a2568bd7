// Stores a document and reads it again:
//
//   put_and_get 127.0.0.1:19100 id:music:music::1 '{"title": "Help!"}'

#include <cstdio>

#include <fjord/fjord.h>

namespace {

int failed(const fjord::Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "put_and_get ADDRESSES ID JSON\n");
    return 2;
  }
  fjord::Client client = fjord::connect(argv[1]);
  const fjord::WriteResult put = client.put_json(argv[2], argv[3]);
  if (!put) return failed(put.status);
  const fjord::JsonResult got = client.get_json(argv[2]);
  if (!got) return failed(got.status);
  std::printf("%s\n", got.json.c_str());
  return 0;
}
