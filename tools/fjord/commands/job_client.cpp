#include "commands/job_client.h"

#include <fmt/format.h>

#include "cli.h"

namespace fjord::cli {
namespace {

/// Returns the number of documents that all passes have read.
std::uint64_t documents_of(const rpc::JobStatus& job) {
  std::uint64_t documents = job.documents_read;
  for (const rpc::PassStatus& pass : job.passes_done) documents += pass.documents_read;
  return documents;
}

}  // namespace

int exit_code_of_done(const rpc::JobStatus& job) {
  if (job.dead_letters == 0) return kOk;
  complain(fmt::format("job {} is done without {} of {} documents, on which map() failed: fjord job dead-letters {}",
                       job.job_id, job.dead_letters, documents_of(job), job.job_id));
  return kPartial;
}

std::string_view shuffle_text(rpc::Shuffle shuffle) {
  if (shuffle == rpc::Shuffle::Direct) return "direct";
  return shuffle == rpc::Shuffle::Store ? "store" : "auto";
}

rpc::Shuffle shuffle_from(std::string_view text) {
  if (text == "direct") return rpc::Shuffle::Direct;
  return text == "store" ? rpc::Shuffle::Store : rpc::Shuffle::Auto;
}

}  // namespace fjord::cli
