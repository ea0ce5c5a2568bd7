#include "feed_source.h"

#include "fjord/document/json.h"

namespace fjord::cli {

rpc::Operation put_operation(std::string id, std::string header, std::string body) {
  rpc::Operation operation;
  operation.kind = rpc::OperationKind::Put;
  operation.id = std::move(id);
  operation.header = std::move(header);
  operation.body = std::move(body);
  return operation;
}

FeedSource::FeedSource(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types)
    : file_(std::move(file)),
      types_(std::move(types)),
      reader_([input = file_.get()](std::span<char> into) { return input->read(into); }) {}

Result<std::optional<Record>> FeedSource::next() {
  FJORD_TRY_ASSIGN(const std::optional<FeedText> text, reader_.next());
  if (!text) return std::optional<Record>();
  return std::optional<Record>(Record{text->json, text->line});
}

Result<rpc::Operation> FeedSource::parse(const Record& record) const {
  FJORD_TRY_ASSIGN(FeedOperation parsed, parse_feed_operation(*types_, record.text));
  // What would be sent without its condition, or as another operation, is refused instead.
  if (parsed.kind == FeedOperation::Kind::Update) {
    return Status(StatusCode::InvalidArgument, "this client sends no updates");
  }
  if (!parsed.condition.empty() || parsed.create_if_missing) {
    return Status(StatusCode::InvalidArgument, "this client sends no conditions and no \"create\"");
  }
  if (parsed.kind == FeedOperation::Kind::Put) {
    return put_operation(parsed.id.str(), std::move(parsed.document->header), std::move(parsed.document->body));
  }
  rpc::Operation operation;
  operation.kind = rpc::OperationKind::Remove;
  operation.id = parsed.id.str();
  return operation;
}

}  // namespace fjord::cli
