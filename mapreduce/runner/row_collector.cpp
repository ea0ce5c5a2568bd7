#include "row_collector.h"

#include <fmt/core.h>
#include <memory>
#include <utility>

#include "fjord/document/docblock.h"
#include "job_tasks.h"

namespace fjord::mapreduce {

Status PageReader::read(const std::string& docblock, const TakeRow& take) {
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(types_, entry->header, entry->body));
    const auto tuples = view.field("tuples");
    if (!tuples) return Status(StatusCode::Corruption, "malformed page of rows: " + std::string(view.id()));
    if (!pages_.insert(std::string(view.id())).second) continue;
    FJORD_TRY(for_each_tuple(tuples->as_string_view(), [&](std::string_view key, std::string_view row) {
      ++rows_;
      return take(key, row);
    }));
  }
  return reader.ok() ? Status::ok() : Status(StatusCode::Corruption, "malformed block of documents");
}

void RowCollector::start(bool is_whole, std::function<void()> then) {
  parts_.rows.clear();
  parts_.job.counts.documents_put = 0;
  auto options = parts_.tasks.reading_options();
  options.selection = parts_.pass.rows_selection(is_whole);
  options.buckets = parts_.pass.output_buckets();
  auto pages = std::make_shared<PageReader>(*parts_.pass.snapshot()->types());
  parts_.tasks.read(
      std::move(options), [this, pages](const std::string& docblock) { return take(*pages, docblock); },
      [this, pages, then = std::move(then)] {
        const Status status = finish(*pages);
        status ? then() : parts_.host.failed(status);
      });
}

Status RowCollector::take(PageReader& pages, const std::string& docblock) {
  FJORD_TRY(pages.read(docblock, [this](std::string_view key, std::string_view row) {
    parts_.rows.rows.add(key, row);
    return Status::ok();
  }));
  // Applies the application's limit early to save memory: a row that is dropped now would also be dropped at the end.
  const MemoryLimit limit = parts_.memory();
  JobRows& rows = parts_.rows.rows;
  if (rows.bytes_while_sorted() > limit.bytes) FJORD_TRY(parts_.pass.application().arrange(rows));
  if (rows.bytes_while_sorted() <= limit.bytes) return Status::ok();
  return Status(StatusCode::TooLarge,
                fmt::format("the rows that the limit leaves need more than {} bytes; the limit "
                            "is the {}",
                            limit.bytes, limit.name),
                limit.details());
}

Status RowCollector::finish(const PageReader& pages) {
  JobRows& rows = parts_.rows.rows;
  const std::uint64_t made = parts_.job.counts.results;
  if (pages.rows() != made) {
    return Status(StatusCode::Corruption, fmt::format("reduce made {} rows, {} are there", made, pages.rows()));
  }
  rows.sort();
  FJORD_TRY(parts_.pass.application().arrange(rows));
  parts_.rows.are_there = true;
  return Status::ok();
}

}  // namespace fjord::mapreduce
