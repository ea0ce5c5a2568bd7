#include "commands/job_client.h"

#include <fmt/format.h>

#include "cli.h"

namespace fjord::cli {

int exit_code_of_done(const JobInfo& job) {
  if (job.dead_letters == 0) return kOk;
  complain(fmt::format("job {} is done without {} of {} documents, on which map() failed: fjord job dead-letters {}",
                       job.id, job.dead_letters, job.documents_read(), job.id));
  return kPartial;
}

}  // namespace fjord::cli
