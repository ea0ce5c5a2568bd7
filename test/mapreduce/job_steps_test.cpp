#include "runner/job_steps.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

using mapreduce::continued_step;
using mapreduce::JobState;
using mapreduce::next_step;
using mapreduce::PassShape;
using mapreduce::Step;
using mapreduce::StepEvent;

constexpr PassShape kStore{.is_last = true, .has_output = true};
constexpr PassShape kStoreRows{.puts_rows = true, .has_output = true};
constexpr PassShape kStoreLimited{.puts_rows = true, .is_limited = true, .has_output = true};
constexpr PassShape kStoreDocuments{.puts_rows = true, .puts_documents = true, .is_last = true, .has_output = true};
constexpr PassShape kDirect{.is_direct = true, .is_last = true};
constexpr PassShape kDirectRows{.is_direct = true, .puts_rows = true, .has_output = true};
constexpr PassShape kDirectDocuments{.is_direct = true,
                                     .puts_rows = true,
                                     .puts_documents = true,
                                     .is_last = true,
                                     .has_output = true,
                                     .keeps_rows = true};

struct Transition {
  Step from;
  StepEvent event;
  PassShape shape;
  Step to;
};

const Transition kTransitions[] = {
    // The tuples go through the store.
    {Step::Map, StepEvent::Done, kStore, Step::Reduce},
    {Step::Reduce, StepEvent::Done, kStore, Step::PassDone},
    {Step::Reduce, StepEvent::Done, kStoreRows, Step::PassDone},
    {Step::Reduce, StepEvent::Done, kStoreDocuments, Step::Put},
    {Step::Reduce, StepEvent::Done, kStoreLimited, Step::Pages},
    {Step::Pages, StepEvent::Done, kStoreLimited, Step::PassDone},
    {Step::Put, StepEvent::Done, kStoreDocuments, Step::PassDone},
    {Step::PassDone, StepEvent::Done, kStoreDocuments, Step::CleanUp},
    {Step::PassDone, StepEvent::Done, kStoreRows, Step::Map},
    {Step::CleanUp, StepEvent::Done, kStore, Step::Over},
    // The tuples go directly to the owner.
    {Step::DirectMap, StepEvent::Done, kDirect, Step::DirectReduce},
    {Step::DirectReduce, StepEvent::Done, kDirect, Step::PassDone},
    {Step::PassDone, StepEvent::Done, kDirect, Step::Over},
    {Step::DirectReduce, StepEvent::Done, kDirectRows, Step::Pages},
    {Step::Pages, StepEvent::Done, kDirectRows, Step::PassDone},
    {Step::PassDone, StepEvent::Done, kDirectRows, Step::DirectMap},
    {Step::Pages, StepEvent::Done, kDirectDocuments, Step::Put},
    {Step::PassDone, StepEvent::Done, kDirectDocuments, Step::KeepRows},
    {Step::KeepRows, StepEvent::Done, kDirectDocuments, Step::CleanUp},
    // Without tuples the runner makes the row of the reduce itself.
    {Step::Reduce, StepEvent::Done, kDirectDocuments, Step::Pages},
    // The groups do not fit into memory.
    {Step::DirectMap, StepEvent::TooLarge, kDirect, Step::Map},
    {Step::DirectReduce, StepEvent::TooLarge, kDirectRows, Step::Map},
    // The distribution bits have changed.
    {Step::Map, StepEvent::Restart, kStore, Step::Map},
    {Step::Put, StepEvent::Restart, kStoreDocuments, Step::Map},
    {Step::DirectReduce, StepEvent::Restart, kDirect, Step::DirectMap},
    // The storage nodes refuse the step's documents for lack of space.
    {Step::Map, StepEvent::Move, kStore, Step::MoveOutput},
    {Step::Reduce, StepEvent::Move, kStore, Step::MoveOutput},
    {Step::Pages, StepEvent::Move, kDirectRows, Step::MoveOutput},
    {Step::MoveOutput, StepEvent::Done, kStore, Step::Map},
    {Step::MoveOutput, StepEvent::Done, kDirectRows, Step::DirectMap},
    {Step::MoveOutput, StepEvent::Abort, kStore, Step::CleanUp},
    // The job fails or is cancelled.
    {Step::Map, StepEvent::Abort, kStore, Step::CleanUp},
    {Step::PassDone, StepEvent::Abort, kDirectRows, Step::CleanUp},
    {Step::DirectMap, StepEvent::Abort, kDirect, Step::Over},
};

TEST_CASE("job steps: the transitions") {
  for (const Transition& row : kTransitions) {
    INFO("row " << &row - kTransitions);
    CHECK((next_step(row.from, row.event, row.shape) == row.to));
  }
}

JobState recorded(rpc::JobPhase phase, rpc::Shuffle shuffle) {
  JobState job;
  job.phase = phase;
  job.shuffle = shuffle;
  job.bits = 4;
  job.output_buckets = 2;
  job.expected_documents = {3, 0};
  return job;
}

TEST_CASE("job steps: where a new owner continues") {
  using rpc::JobPhase;
  using rpc::Shuffle;
  CHECK((continued_step(recorded(JobPhase::Map, Shuffle::Store), 4) == Step::Map));
  CHECK((continued_step(recorded(JobPhase::Reduce, Shuffle::Store), 4) == Step::Reduce));
  CHECK((continued_step(recorded(JobPhase::Put, Shuffle::Store), 4) == Step::Put));
  CHECK((continued_step(recorded(JobPhase::Put, Shuffle::Direct), 5) == Step::Put));
  JobState job = recorded(JobPhase::CleanUp, Shuffle::Store);
  CHECK_FALSE(continued_step(job, 4).has_value());
  job.outcome = JobPhase::Failed;
  CHECK((continued_step(job, 4) == Step::CleanUp));
  CHECK_FALSE(continued_step(recorded(JobPhase::Map, Shuffle::Direct), 4).has_value());
  CHECK_FALSE(continued_step(recorded(JobPhase::Reduce, Shuffle::Direct), 4).has_value());
  CHECK_FALSE(continued_step(recorded(JobPhase::Map, Shuffle::Store), 5).has_value());
  job = recorded(JobPhase::Map, Shuffle::Store);
  job.counts.map_tasks_done = 1;  // The record has no cursor.
  CHECK_FALSE(continued_step(job, 4).has_value());
  job.resume = "a cursor";
  CHECK((continued_step(job, 4) == Step::Map));
  job.expected_documents.clear();
  CHECK_FALSE(continued_step(job, 4).has_value());
  job.output_buckets = 0;
  CHECK_FALSE(continued_step(job, 4).has_value());
}

}  // namespace
}  // namespace fjord
