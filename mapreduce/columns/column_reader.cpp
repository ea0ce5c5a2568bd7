#include "columns/column_reader.h"

#include <limits>
#include <utility>

namespace fjord::mapreduce {

bool ColumnLookup::is_possible(const spi::IterateOptions& options) {
  std::call_once(asked_, [&] {
    const bool is_all_times =
        options.from == Timestamp{0} && options.to == Timestamp{std::numeric_limits<std::uint64_t>::max()};
    const bool is_fixed = options.selection == nullptr || !options.selection->needs_now();
    is_possible_ = is_all_times && is_fixed;
    if (is_possible_ && options.selection != nullptr) query_.selection = options.selection->to_string();
  });
  return is_possible_;
}

Status ColumnReader::begin(const visitors::BucketOnNode& bucket) {
  has_begun_ = true;
  if (!lookup_->is_possible(bucket.options)) return Status::ok();
  FJORD_TRY_ASSIGN(const bool damaged, is_damaged(bucket));
  if (damaged) return Status::ok();
  FJORD_TRY_ASSIGN(const BucketContent content, content_of(bucket));
  content_ = ColumnContent{content};
  return find_columns(bucket);
}

Status ColumnReader::find_columns(const visitors::BucketOnNode& bucket) {
  found_ = lookup_->find(bucket_, content_->version);
  if (found_) return Status::ok();
  const std::optional<FoundColumns> former = lookup_->find_former(bucket_);
  if (!former) return Status::ok();
  FJORD_TRY_ASSIGN(std::optional<ColumnContent> same, with_same_documents(bucket, former->columns->content, *content_));
  if (!same) {
    given_.emplace();
    return Status::ok();
  }
  auto columns = std::make_shared<BucketColumns>(*former->columns);
  columns->content = std::move(*same);
  lookup_->replace(bucket_, *former->columns, columns);
  found_ = FoundColumns{std::move(columns), former->places};
  return Status::ok();
}

Result<bool> ColumnReader::next(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) {
  if (!has_begun_) FJORD_TRY(begin(bucket));
  if (found_) return false;
  const std::size_t before = block.size();
  FJORD_TRY_ASSIGN(const bool more, documents_.read(bucket, block, bytes_max));
  if (given_) {
    DocBlockReader entries(block.bytes().substr(before));
    while (const auto entry = entries.next()) given_->push_back(entry->gid);
  }
  if (more || !content_) return more;
  FJORD_TRY(finish_content(bucket));
  return false;
}

/// Looks whether the bucket still has the content that it had before its documents were read.
Status ColumnReader::finish_content(const visitors::BucketOnNode& bucket) {
  FJORD_TRY_ASSIGN(const BucketContent now, content_of(bucket));
  FJORD_TRY_ASSIGN(const bool damaged, is_damaged(bucket));
  if (damaged || now.version != content_->version) {
    content_.reset();
  } else if (documents_.given() == now.version.entries) {
    content_->others = std::make_shared<const Entries>();
  } else if (given_) {
    FJORD_TRY_ASSIGN(Entries others, others_of(bucket, std::move(*given_)));
    others.shrink_to_fit();
    // Columns of a few documents among many others are not worth a list of these.
    if (others.size() <= documents_.given()) content_->others = std::make_shared<const Entries>(std::move(others));
  }
  return Status::ok();
}

}  // namespace fjord::mapreduce
