#pragma once

#include <memory>
#include <string>

#include "fjord/client/operations.h"
#include "fjord/document/document_type.h"
#include "fjord/document/feed_reader.h"
#include "fjord/document/json_conversion.h"
#include "fjord/library/detail/input_file.h"
#include "record_source.h"

namespace fjord {

/// A feed: JSONL or a JSON array of puts, updates and removes (document/FEED.md).
class FeedSource : public RecordSource {
 public:
  FeedSource(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types, JsonValues values);

  const std::string& name() const override { return file_->name(); }
  Result<std::optional<FileRecord>> next() override;
  bool failed() const override { return reader_.failed(); }
  double part_read() const override { return file_->part_read(); }
  Result<rpc::Operation> parse(const FileRecord& record) const override;

 protected:
  const DocumentTypeRepo& types() const { return *types_; }
  JsonValues values() const { return values_; }

 private:
  std::unique_ptr<InputFile> file_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  const JsonValues values_;
  FeedReader reader_;
};

}  // namespace fjord
