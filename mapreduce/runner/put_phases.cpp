#include "put_phases.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "fjord/document/docblock.h"
#include "job_tasks.h"
#include "row_pump.h"
#include "task/rows.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kPageBytesMin = std::size_t{16} << 10;
constexpr std::size_t kPageBytesMax = std::size_t{1} << 20;
constexpr std::uint64_t kBytesOfId = 32;  // memory per id of a document that must exist

}  // namespace

// --- Pages

PagesPhase::PagesPhase(JobParts parts)
    : parts_(std::move(parts)), collector_(parts_), reads_(parts_.job.shuffle != rpc::Shuffle::Direct) {}

void PagesPhase::start() {
  if (!reads_) return write();
  collector_.start(true, [this] {
    reads_ = false;
    parts_.host.continue_later();
  });
}

void PagesPhase::write() {
  JobState& job = parts_.job;
  job.counts.results = parts_.rows.rows.size();
  const std::size_t page_bytes =
      std::clamp(parts_.rows.bytes() / (2 * std::size_t{job.output_buckets}), kPageBytesMin, kPageBytesMax);
  struct Place {
    std::size_t row = 0;
    std::uint32_t page = 0;
  };
  parts_.pump.run(
      [this, page_bytes, task = parts_.pass.task(), at = Place()](SinkOperation& operation) mutable -> Result<bool> {
        const JobRows& rows = parts_.rows.rows;
        RowPage page;
        while (at.row < rows.size() && page.bytes() < page_bytes) {
          const auto [key, value] = rows[at.row];
          page.add(printable_key(key), value);
          ++at.row;
        }
        if (page.is_empty()) return false;
        const std::uint32_t number = at.page++;
        FJORD_TRY_ASSIGN(operation.document,
                         page_document(task, *parts_.pass.snapshot()->types(), false, number % task.output_buckets,
                                       number / task.output_buckets, page.take(), operation.id));
        parts_.job.counts.sent_bytes += operation.document->size();
        return true;
      },
      [this] { parts_.host.ended(); });
}

// --- Documents

PutPhase::PutPhase(JobParts parts) : parts_(std::move(parts)), collector_(parts_), part_(first_part()) {
  const bool misses_rows =
      parts_.pass.is_last() && parts_.job.shuffle == rpc::Shuffle::Direct && !parts_.rows.are_there;
  if (misses_rows) part_ = Part::Collect;
}

/// Returns the part that the phase begins with. With the store shuffle, reduce tasks have put the documents already,
/// unless a limit drops rows.
PutPhase::Part PutPhase::first_part() const {
  const bool is_to_put = parts_.job.shuffle == rpc::Shuffle::Direct || parts_.pass.is_limited();
  return is_to_put && parts_.job.counts.results != 0 ? Part::Put : Part::ReadPages;
}

void PutPhase::start() {
  switch (part_) {
    case Part::Collect:
      return collector_.start(false, [this] { go_to(first_part()); });
    case Part::Put:
      return put();
    case Part::ReadPages:
      return read_pages();
    case Part::ReadTargets:
      return read_targets();
    case Part::Remove:
      return remove_obsolete();
  }
}

void PutPhase::go_to(Part part) {
  part_ = part;
  parts_.host.continue_later();
}

void PutPhase::put() {
  auto options = parts_.tasks.options(kPutVisitor);
  options.parameters = parts_.pass.put_task().to_parameters();
  options.selection = parts_.pass.rows_selection(false);
  options.buckets = parts_.pass.output_buckets();
  parts_.job.counts.documents_put = 0;
  parts_.tasks.run(std::move(options),
                   {.on_task = [this](BucketId, const TaskReport& report) { return on_put(report); },
                    .on_known = {},
                    .on_ended =
                        [this] {
                          const PassCounts& counts = parts_.job.counts;
                          if (counts.documents_put == counts.results) return go_to(Part::ReadPages);
                          parts_.host.failed(Status(
                              StatusCode::Corruption,
                              fmt::format("{} rows were put, there are {}", counts.documents_put, counts.results)));
                        }});
}

Status PutPhase::on_put(const TaskReport& report) {
  JobState& job = parts_.job;
  job.counts.documents_put += report.results;
  job.counts.sent_bytes += report.sent_bytes;
  job.busy_us += report.busy_us;
  job.processor_us += report.processor_us;
  parts_.tasks.count(report.sent_bytes, report.results);
  return Status::ok();
}

void PutPhase::read_pages() {
  const std::uint64_t fit = std::max<std::uint64_t>(1, parts_.memory().bytes / 2 / kBytesOfId);
  const std::uint64_t results = parts_.job.counts.results;
  const std::uint64_t round = round_.round;
  round_ = Round();
  round_.round = round;
  round_.rounds = results / fit + 1;
  auto options = parts_.tasks.reading_options();
  options.selection = parts_.pass.rows_selection(false);
  options.buckets = parts_.pass.output_buckets();
  auto pages = std::make_shared<PageReader>(*parts_.pass.snapshot()->types());
  const auto take = [this](std::string_view key, std::string_view) -> Status {
    FJORD_TRY_ASSIGN(const DocumentId id, row_target_id(parts_.pass.target(), key));
    if (round_.covers(id.gid())) round_.wanted.push_back(id.gid());
    return Status::ok();
  };
  parts_.tasks.read(
      std::move(options), [pages, take](const std::string& docblock) { return pages->read(docblock, take); },
      [this, pages, results] {
        if (pages->rows() == results) return go_to(Part::ReadTargets);
        parts_.host.failed(
            Status(StatusCode::Corruption, fmt::format("reduce made {} rows, {} are there", results, pages->rows())));
      });
}

void PutPhase::read_targets() {
  std::sort(round_.wanted.begin(), round_.wanted.end());
  round_.found.assign(round_.wanted.size(), false);
  round_.obsolete.clear();
  round_.obsolete_bytes = 0;
  round_.again = false;
  auto options = parts_.tasks.reading_options();
  options.ids_only = true;
  options.selection = parts_.pass.target_selection();
  parts_.tasks.read(
      std::move(options), [this](const std::string& docblock) { return take_targets(docblock); },
      [this] {
        const Status complete = check_targets();
        complete ? go_to(Part::Remove) : parts_.host.failed(complete);
      });
}

Status PutPhase::take_targets(const std::string& docblock) {
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    if (!round_.covers(entry->gid)) continue;
    const auto at = std::lower_bound(round_.wanted.begin(), round_.wanted.end(), entry->gid);
    if (at != round_.wanted.end() && *at == entry->gid) {
      round_.found[static_cast<std::size_t>(at - round_.wanted.begin())] = true;
      continue;
    }
    FJORD_TRY_ASSIGN(const DocumentView view,
                     DocumentView::open(*parts_.pass.snapshot()->types(), entry->header, entry->body));
    if (round_.obsolete_bytes > parts_.memory().bytes / 2) {
      round_.again = true;
      continue;
    }
    round_.obsolete.emplace_back(view.id());
    round_.obsolete_bytes += round_.obsolete.back().size() + sizeof(std::string);
  }
  return reader.ok() ? Status::ok() : Status(StatusCode::Corruption, "malformed block of documents");
}

/// Checks that each row has its document. Errors: Corruption if one has none.
Status PutPhase::check_targets() const {
  const auto missing = std::count(round_.found.begin(), round_.found.end(), false);
  if (missing == 0) return Status::ok();
  return Status(StatusCode::Corruption, fmt::format("{} of {} documents of type {} are not there after they were put",
                                                    missing, parts_.job.counts.results, parts_.pass.target().type));
}

void PutPhase::remove_obsolete() {
  parts_.pump.run(
      [this, at = std::size_t{0}](SinkOperation& operation) mutable -> Result<bool> {
        if (at == round_.obsolete.size()) return false;
        operation.id = round_.obsolete[at++];
        operation.document.reset();
        return true;
      },
      [this] { on_removed(); });
}

void PutPhase::on_removed() {
  parts_.job.counts.documents_removed += round_.obsolete.size();
  if (!round_.again) ++round_.round;
  if (round_.round < round_.rounds) {
    go_to(Part::ReadPages);
  } else {
    parts_.host.ended();
  }
}

}  // namespace fjord::mapreduce
