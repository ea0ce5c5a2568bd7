#pragma once

#include <string_view>

#include "fjord/mapreduce/job_state.h"

/// Records of version 1, which earlier releases wrote: answers to listJobs in Thrift's compact protocol. The state of a
/// record is the only job of the answer; its results are the results of the answer. They are read, never written.
namespace fjord::mapreduce {

/// True if `content` is of version 1.
bool is_job_record_v1(std::string_view content);
/// Reads the state, or the results, from `content` of version 1. Errors: Corruption.
Result<JobState> decode_job_state_v1(std::string_view content);
Result<JobRows> decode_job_rows_v1(std::string_view content);

}  // namespace fjord::mapreduce
