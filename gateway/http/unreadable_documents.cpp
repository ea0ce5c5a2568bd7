#include "http/unreadable_documents.h"

#include "fjord/document/document_format.h"
#include "http/json_body.h"

namespace fjord::gateway {

std::string unreadable_json(const EntryView& entry, const Status& error) {
  std::string json = "{\"id\":";
  append_json_string(json, entry.removed ? entry.id : document_id_of_header(entry.header));
  json += ",\"message\":";
  append_json_string(json, error.message());
  return json + "}";
}

Status UnreadableDocuments::take(const EntryView& entry, const Status& error) {
  const bool is_of_document = error.code() == StatusCode::Corruption || error.code() == StatusCode::UnknownType;
  if (!is_of_document) return error;
  messages_.push_back(unreadable_json(entry, error));
  return Status::ok();
}

std::string UnreadableDocuments::member() const {
  if (messages_.empty()) return {};
  std::string text = ",\"unreadable\":[";
  for (std::size_t i = 0; i < messages_.size(); ++i) text += (i == 0 ? "" : ",") + messages_[i];
  return text + "]";
}

}  // namespace fjord::gateway
