#include "feed_source.h"

#include "fjord/document/json.h"

namespace fjord {

FeedSource::FeedSource(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types,
                       JsonValues values)
    : file_(std::move(file)),
      types_(std::move(types)),
      values_(values),
      reader_([input = file_.get()](std::span<char> into) { return input->read(into); }) {}

Result<std::optional<FileRecord>> FeedSource::next() {
  FJORD_TRY_ASSIGN(const std::optional<FeedText> text, reader_.next());
  if (!text) return std::optional<FileRecord>();
  return std::optional<FileRecord>(FileRecord{text->json, text->line});
}

Result<rpc::Operation> FeedSource::parse(const FileRecord& record) const {
  FJORD_TRY_ASSIGN(FeedOperation parsed, parse_feed_operation(*types_, record.text, values_));
  const auto operation_of = [&] {
    switch (parsed.kind) {
      case FeedOperation::Kind::Put:
        return put_operation(parsed.id.str(), std::move(*parsed.document));
      case FeedOperation::Kind::Update:
        return update_operation(*parsed.update);
      case FeedOperation::Kind::Remove:
        break;
    }
    return remove_operation(parsed.id.str());
  };
  rpc::Operation operation = operation_of();
  operation.condition = std::move(parsed.condition);
  operation.create = parsed.create_if_missing;
  return operation;
}

}  // namespace fjord
