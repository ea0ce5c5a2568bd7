#include "export_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "fjord/common/random.h"
#include "fjord/library/detail/input_file.h"

namespace fjord {
namespace {

using visitors::PositionRange;
using visitors::SessionCursor;

/// A temporary folder, removed by its destructor.
struct Folder {
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fjord-export-" + std::to_string(Random::from_system().next()));
};

std::string content(const std::string& path) {
  auto file = InputFile::open(path);  // The file is compressed; InputFile decompresses it.
  REQUIRE(file.has_value());
  auto all = (*file)->read_all(std::size_t{1} << 30);
  REQUIRE(all.has_value());
  return *all;
}

VisitedBucket bucket(std::uint64_t i) { return {0, BucketId(4, i)}; }

std::vector<SessionCursor> cursor_of(std::uint64_t count) {
  SessionCursor cursor{.question = 7, .done = {}};
  for (std::uint64_t i = 0; i < count; ++i) cursor.done.add(PositionRange::of(BucketId(4, i)));
  return {cursor};
}

TEST_CASE("an export that is killed is cut back to the buckets that its progress file names") {
  const std::string name = GENERATE(std::string("out.jsonl"), std::string("out.jsonl.gz"));
  Folder folder;
  const std::string path = folder.file(name);
  {
    auto file = ExportFile::open(path, ExportFile::Mode::New);
    REQUIRE(file.has_value());
    REQUIRE((*file)->add(bucket(0), "a\n", 1).is_ok());
    REQUIRE((*file)->add(bucket(1), "b\n", 1).is_ok());
    REQUIRE((*file)->add(bucket(0), "c\n", 1).is_ok());
    REQUIRE((*file)->commit(bucket(0)).is_ok());
    REQUIRE((*file)->save(cursor_of(1)).is_ok());
    REQUIRE((*file)->commit(bucket(1)).is_ok());
    REQUIRE((*file)->add(bucket(2), "lost\n", 1).is_ok());
  }  // The state after a kill at this moment: bucket 1 is in the file, but not in the progress file.
  CHECK(content(path) == "a\nc\nb\n");
  auto file = ExportFile::open(path, ExportFile::Mode::Resume);
  REQUIRE(file.has_value());
  CHECK(content(path) == "a\nc\n");
  CHECK((*file)->resumed() == cursor_of(1));
  CHECK((*file)->documents() == 2);
  REQUIRE((*file)->add(bucket(1), "b\n", 1).is_ok());
  REQUIRE((*file)->add(bucket(2), "dropped\n", 1).is_ok());
  (*file)->drop(bucket(2));
  REQUIRE((*file)->commit(bucket(2)).is_ok());
  REQUIRE((*file)->commit(bucket(1)).is_ok());
  REQUIRE((*file)->finish().is_ok());
  CHECK(content(path) == "a\nc\nb\n");
  CHECK((*file)->documents() == 3);
  CHECK_FALSE(std::filesystem::exists(path + ".progress"));
  CHECK(ExportFile::open(path, ExportFile::Mode::Resume).status().code() == StatusCode::AlreadyExists);
}

TEST_CASE("buckets that do not fit into memory wait in files beside") {
  Folder folder;
  const std::string path = folder.file("out.jsonl");
  auto file = ExportFile::open(path, ExportFile::Mode::New);
  REQUIRE(file.has_value());
  std::string expected;
  for (int i = 0; i < 5; ++i) {
    const std::string lines(5'000'000, static_cast<char>('a' + i));
    expected += lines;
    REQUIRE((*file)->add(bucket(0), lines, 1).is_ok());
    REQUIRE((*file)->add(bucket(1), "x", 1).is_ok());
  }
  REQUIRE((*file)->commit(bucket(0)).is_ok());
  REQUIRE((*file)->commit(bucket(1)).is_ok());
  REQUIRE((*file)->finish().is_ok());
  CHECK(content(path) == expected + "xxxxx");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("an export that was killed before anything was written begins when it is resumed") {
  Folder folder;
  const std::string path = folder.file("out.jsonl");
  std::ofstream(path) << "";
  CHECK(ExportFile::open(path, ExportFile::Mode::New).status().code() == StatusCode::AlreadyExists);
  CHECK(ExportFile::open(path, ExportFile::Mode::Resume).has_value());
}

TEST_CASE("what is there is not overwritten, and what does not fit is not resumed") {
  Folder folder;
  const std::string path = folder.file("out.jsonl");
  std::ofstream(path) << "mine";
  CHECK(ExportFile::open(path, ExportFile::Mode::New).status().code() == StatusCode::AlreadyExists);
  CHECK(ExportFile::open(path, ExportFile::Mode::Resume).status().code() == StatusCode::AlreadyExists);
  CHECK(content(path) == "mine");
  std::ofstream(path + ".progress") << "fjord-export-1 100 3\n" << cursor_of(1)[0].to_text() << "\n";
  CHECK(ExportFile::open(path, ExportFile::Mode::Resume).status().code() == StatusCode::InvalidArgument);
  std::ofstream(path + ".progress") << "nonsense";
  CHECK(ExportFile::open(path, ExportFile::Mode::Resume).status().code() == StatusCode::InvalidArgument);
  CHECK(ExportFile::open(path, ExportFile::Mode::Overwrite).has_value());
  CHECK(content(path).empty());
}

TEST_CASE("an export whose progress file was changed or cut off is refused, and the file is named") {
  Folder folder;
  const std::string path = folder.file("out.jsonl");
  const std::string progress = path + ".progress";
  {
    auto file = ExportFile::open(path, ExportFile::Mode::New);
    REQUIRE((*file)->add(bucket(0), "a\n", 1).is_ok());
    REQUIRE((*file)->commit(bucket(0)).is_ok());
    REQUIRE((*file)->add(bucket(1), "b\n", 1).is_ok());
    REQUIRE((*file)->commit(bucket(1)).is_ok());
    REQUIRE((*file)->save(cursor_of(2)).is_ok());
  }
  const std::string text = content(progress);
  const auto resume = [&](const std::string& kept) {
    std::ofstream(progress) << kept;
    return ExportFile::open(path, ExportFile::Mode::Resume).status();
  };
  const auto check_refused = [&](const std::string& kept) {
    INFO(kept);
    const Status status = resume(kept);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find(progress) != std::string::npos);
    CHECK(status.message().find("--overwrite") != std::string::npos);
  };
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    check_refused(text.substr(0, i));
    std::string changed = text;
    changed[i] = changed[i] == '1' ? '2' : '1';
    check_refused(changed);
  }
  CHECK(content(path) == "a\nb\n");
  CHECK(resume(text).is_ok());
  CHECK(resume("fjord-export-1 4 2\n" + cursor_of(2)[0].to_text() + "\n").is_ok());  // The former form.
}

}  // namespace
}  // namespace fjord
