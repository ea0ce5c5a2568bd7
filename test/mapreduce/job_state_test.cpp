#include "fjord/mapreduce/job_state.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "fjord/rpc/codec.h"
#include "record/job_state_fields.h"
#include "support/project_files.h"

namespace fjord {
namespace {

using mapreduce::JobRows;
using mapreduce::JobState;

/// Gives each member a value of its own that is not its default.
class Filler {
 public:
  template <typename T>
  void operator()(unsigned, T& value) {
    ++next_;
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(next_);
    } else if constexpr (std::is_same_v<T, rpc::JobPhase>) {
      value = next_ % 2 == 0 ? rpc::JobPhase::Reduce : rpc::JobPhase::CleanUp;
    } else if constexpr (std::is_same_v<T, rpc::Shuffle>) {
      value = rpc::Shuffle::Direct;
    } else if constexpr (std::is_same_v<T, Status>) {
      value = Status(StatusCode::TooLarge, "error " + std::to_string(next_));
    } else if constexpr (mapreduce::field_codec::kIsVector<T>) {
      value.resize(2);
      for (auto& element : value) (*this)(0, element);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(next_ * 1000);
    } else {
      mapreduce::fields(*this, value);
    }
  }

 private:
  unsigned next_ = 0;
};

JobState filled() {
  JobState job;
  Filler filler;
  mapreduce::fields(filler, job);
  return job;
}

const JobRows kRows = {{"Bergen", "1"}, {"Oslo", R"({"count":2})"}, {std::string("\0\xff", 2), ""}};

/// Returns the answer to listJobs that records of version 1 consist of.
std::string packed_v1(rpc::ListJobsReply content) {
  return rpc::encode_reply({rpc::ListJobs::kName, 0, rpc::WireProtocol::Compact}, rpc::Reply(std::move(content)));
}

std::string state_v1(const JobState& job) {
  rpc::JobStatus status = mapreduce::to_status(job, {.dead_letters = true});
  status.resume = job.resume;
  for (const std::uint64_t count : job.expected_documents) {
    status.expected += (status.expected.empty() ? "" : ",") + std::to_string(count);
  }
  rpc::ListJobsReply content;
  content.jobs.push_back(std::move(status));
  return packed_v1(std::move(content));
}

std::string rows_v1(const JobRows& rows) {
  rpc::ListJobsReply content;
  for (const auto& [key, value] : rows) content.results.push_back({std::string(key), std::string(value)});
  return packed_v1(std::move(content));
}

std::filesystem::path stored_file(const std::string& name) { return test::data_file("job_records") / name; }

std::string stored(const std::string& name) {
  std::ifstream file(stored_file(name), std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("job state: all members survive encoding") {
  const JobState job = filled();
  const auto read = mapreduce::decode_job_state(mapreduce::encode_job_state(job));
  INFO(read.status());
  REQUIRE(read.has_value());
  CHECK((*read == job));
  const auto empty = mapreduce::decode_job_state(mapreduce::encode_job_state(JobState()));
  REQUIRE(empty.has_value());
  CHECK((*empty == JobState()));
}

TEST_CASE("job state: zeros in a vector and negative numbers survive encoding") {
  JobState job;
  job.expected_documents = {0, 3, 0};
  job.application_versions = {"", "2"};
  job.submitted_unix_us = -1;
  const auto read = mapreduce::decode_job_state(mapreduce::encode_job_state(job));
  REQUIRE(read.has_value());
  CHECK((*read == job));
}

TEST_CASE("job state: results survive encoding") {
  const auto rows = mapreduce::decode_job_rows(mapreduce::encode_job_rows(kRows));
  REQUIRE(rows.has_value());
  CHECK(*rows == kRows);
  CHECK(mapreduce::decode_job_rows(mapreduce::encode_job_rows({}))->empty());
}

TEST_CASE("job state: fields of a later release are skipped") {
  const JobState job = filled();
  std::string content = mapreduce::encode_job_state(job);
  put_varint(content, 1000 << 1);
  put_varint(content, 7);
  put_varint(content, 1001 << 1 | 1);
  put_string(content, "something new");
  const auto read = mapreduce::decode_job_state(content);
  REQUIRE(read.has_value());
  CHECK((*read == job));
}

TEST_CASE("job state: a newer version is refused, and so is a damaged record") {
  std::string content = mapreduce::encode_job_state(filled());
  content[0] = 3;
  CHECK(mapreduce::decode_job_state(content).status().code() == StatusCode::NotImplemented);
  content[0] = 1;
  CHECK(mapreduce::decode_job_state(content).status().code() == StatusCode::Corruption);
  content[0] = 2;
  CHECK(mapreduce::decode_job_state(std::string_view(content).substr(0, content.size() - 1)).status().code() ==
        StatusCode::Corruption);
  CHECK(mapreduce::decode_job_state("").status().code() == StatusCode::Corruption);
  // Bytes in which field 1, the job's id, is a number.
  CHECK(mapreduce::decode_job_state(std::string("\2\2\1", 3)).status().code() == StatusCode::Corruption);
}

TEST_CASE("job state: the answer has what users see, and nothing for a new owner only") {
  JobState job = filled();
  job.phase = rpc::JobPhase::Done;
  job.results_removed = false;
  const rpc::JobStatus stored = mapreduce::to_status(job, {.results_kept = microseconds(50)});
  CHECK_FALSE(stored.live);
  CHECK(stored.job_id == job.job_id);
  CHECK(stored.documents_read == job.counts.documents_read);
  CHECK(stored.dead_letters == 2);
  CHECK(stored.dead_letter_list.empty());
  CHECK(stored.resume.empty());
  CHECK(stored.expected.empty());
  CHECK(stored.results_until_unix_us == job.finished_unix_us + 50);
  const mapreduce::JobOutlook outlook{.bound_by = "throttle", .left = seconds(3), .left_error = seconds(1)};
  const rpc::JobStatus live = mapreduce::to_status(job, {.outlook = &outlook, .dead_letters = true});
  CHECK(live.live);
  CHECK(live.bound_by == "throttle");
  CHECK(live.left_us == 3'000'000);
  CHECK(live.dead_letter_list == job.dead_letters);
  CHECK(live.results_until_unix_us == 0);
}

TEST_CASE("job state: a record of version 1 is read") {
  const auto job = mapreduce::decode_job_state(stored("state_v1.bin"));
  INFO(job.status());
  REQUIRE(job.has_value());
  CHECK((*job == filled()));
  const auto rows = mapreduce::decode_job_rows(stored("rows_v1.bin"));
  REQUIRE(rows.has_value());
  CHECK(*rows == kRows);
  CHECK(mapreduce::decode_job_state(stored("rows_v1.bin")).status().code() == StatusCode::Corruption);
}

TEST_CASE("job state: a record of version 2 is read") {
  const auto job = mapreduce::decode_job_state(stored("state_v2.bin"));
  INFO(job.status());
  REQUIRE(job.has_value());
  CHECK((*job == filled()));
  CHECK(mapreduce::encode_job_state(filled()) == stored("state_v2.bin"));
  const auto rows = mapreduce::decode_job_rows(stored("rows_v2.bin"));
  REQUIRE(rows.has_value());
  CHECK(*rows == kRows);
}

// Writes test/data/job_records; not part of a test run. The files stay as they are once the format is in use: a change
// of the format needs a new version and other files.
TEST_CASE("job state: the stored records are written", "[.generate]") {
  const auto write = [](const std::string& name, const std::string& content) {
    std::filesystem::create_directories(stored_file(name).parent_path());
    std::ofstream(stored_file(name), std::ios::binary) << content;
    CHECK(stored(name) == content);
  };
  write("state_v1.bin", state_v1(filled()));
  write("rows_v1.bin", rows_v1(kRows));
  write("state_v2.bin", mapreduce::encode_job_state(filled()));
  write("rows_v2.bin", mapreduce::encode_job_rows(kRows));
}

}  // namespace
}  // namespace fjord
