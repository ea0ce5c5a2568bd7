#pragma once

#include <string_view>

#include "fjord/mapreduce/job_state.h"

/// Records of version 1, which earlier releases wrote: answers to listJobs in Thrift's compact protocol. The state is a
/// job of the answer; results are those of the answer. Records of version 1 are read, never written.
namespace fjord::mapreduce {

/// True if `content` is of version 1.
bool is_job_record_v1(std::string_view content);
/// Errors: Corruption.
Result<JobState> decode_job_state_v1(std::string_view content);
Result<JobRows> decode_job_rows_v1(std::string_view content);

}  // namespace fjord::mapreduce
