#include "decode_entry.h"

namespace fjord {

Result<DocumentView> know_type(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                               const EntryView& entry) {
  auto view = DocumentView::open(*types, entry.header, entry.body);
  if (!view || view->type() != nullptr) return view;
  // A callback cannot wait; it uses the newest schemas that the client has.
  if (!core.executor().is_current()) FJORD_TRY(core.refresh());
  types = core.types();
  return DocumentView::open(*types, entry.header, entry.body);
}

Result<Document> decode_entry(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                              const Projection& projection, const EntryView& entry) {
  FJORD_TRY_ASSIGN(const DocumentView view, know_type(core, types, entry));
  FJORD_TRY_ASSIGN(Document document, view.document());
  projection.apply(document);
  document.keep(types);
  return document;
}

Result<Document> EntryDecoder::decode(const EntryView& entry) {
  if (entry.header.empty()) return Status(StatusCode::InvalidArgument, "the entry has no document");
  std::shared_ptr<const DocumentTypeRepo> types;
  {
    const std::lock_guard lock(mutex_);
    types = types_;
  }
  const DocumentTypeRepo* const known = types.get();
  auto document = decode_entry(core_, types, projection_, entry);
  if (types.get() != known) {
    const std::lock_guard lock(mutex_);
    types_ = std::move(types);
  }
  return document;
}

}  // namespace fjord
