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
  FJORD_TRY_ASSIGN(content_, version_of(bucket));
  found_ = lookup_->find(bucket_, *content_);
  return Status::ok();
}

Result<bool> ColumnReader::next(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) {
  if (!has_begun_) FJORD_TRY(begin(bucket));
  if (found_) return false;
  FJORD_TRY_ASSIGN(const bool more, documents_.read(bucket, block, bytes_max));
  if (more || !content_) return more;
  FJORD_TRY_ASSIGN(const ContentVersion now, version_of(bucket));
  FJORD_TRY_ASSIGN(const bool damaged, is_damaged(bucket));
  if (damaged || now != *content_) content_.reset();
  return false;
}

}  // namespace fjord::mapreduce
