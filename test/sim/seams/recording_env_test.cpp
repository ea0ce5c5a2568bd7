#include "fjord/sim/recording_env.h"

#include <catch2/catch.hpp>
#include <set>

namespace fjord::sim {

namespace {

std::set<DiskImage> process_ends(const RecordingEnv& env, std::size_t changes) {
  std::set<DiskImage> images;
  env.visit_process_ends(changes, [&](const DiskImage& image, const std::string&) { images.insert(image); });
  return images;
}

std::set<DiskImage> power_losses(const RecordingEnv& env) {
  std::set<DiskImage> images;
  env.visit_power_losses(env.changes(), [&](const DiskImage& image, const std::string&) { images.insert(image); });
  return images;
}

}  // namespace

TEST_CASE("recording env: a process that ends leaves what it wrote, and the write that was next in part") {
  RecordingEnv env(DiskImage{{"/d/old", "before"}});
  auto file = env.open_random_access("/d/old").value();
  REQUIRE(file->write(0, "AFTER!").is_ok());
  CHECK(read_file(env, "/d/old").value() == "AFTER!");
  CHECK(process_ends(env, 1) == std::set<DiskImage>{{{"/d/old", "AFTER!"}}});
  CHECK(process_ends(env, 0) ==
        std::set<DiskImage>{
            {{"/d/old", "before"}}, {{"/d/old", "Aefore"}}, {{"/d/old", "AFTore"}}, {{"/d/old", "AFTERe"}}});
}

TEST_CASE("recording env: what was synced survives every loss of power, the rest may be lost or torn") {
  RecordingEnv env(DiskImage{{"/d/a", std::string(1024, 'a')}});
  auto file = env.open_random_access("/d/a").value();
  REQUIRE(file->write(0, std::string(512, 'b')).is_ok());
  REQUIRE(file->sync().is_ok());
  CHECK(power_losses(env) == std::set<DiskImage>{{{"/d/a", std::string(512, 'b') + std::string(512, 'a')}}});
  REQUIRE(file->write(0, std::string(1024, 'c')).is_ok());
  const std::set<DiskImage> images = power_losses(env);
  CHECK(images.contains({{"/d/a", std::string(512, 'b') + std::string(512, 'a')}}));
  CHECK(images.contains({{"/d/a", std::string(1024, 'c')}}));
  CHECK(images.contains({{"/d/a", std::string(512, 'c') + std::string(512, 'a')}}));
  CHECK(images.contains({{"/d/a", std::string(512, 'b') + std::string(512, 'c')}}));
}

TEST_CASE("recording env: names survive a loss of power only after the directory was synced") {
  RecordingEnv env(DiskImage{{"/d/a", "a"}});
  REQUIRE(env.rename("/d/a", "/d/b").is_ok());
  REQUIRE(env.create_random_access("/d/c").has_value());
  CHECK(power_losses(env) ==
        std::set<DiskImage>{
            {{"/d/a", "a"}}, {{"/d/b", "a"}}, {{"/d/b", "a"}, {"/d/c", ""}}, {{"/d/a", "a"}, {"/d/c", ""}}});
  REQUIRE(env.sync_directory("/d").is_ok());
  CHECK(power_losses(env) == std::set<DiskImage>{{{"/d/b", "a"}, {"/d/c", ""}}});
}

TEST_CASE("recording env: after the end of the process nothing changes any more until the next one starts") {
  RecordingEnv env(DiskImage{{"/d/a", "a"}});
  env.end_process_after(1);
  auto file = env.open_random_access("/d/a").value();
  REQUIRE(file->write(0, "b").is_ok());
  CHECK(file->write(0, "c").code() == StatusCode::IoError);
  CHECK(env.remove_file("/d/a").code() == StatusCode::IoError);
  CHECK(read_file(env, "/d/a").value() == "b");
  env.start_process();
  CHECK(file->write(0, "c").is_ok());
}

}  // namespace fjord::sim
