#include "decode_entry.h"

namespace fjord {

Result<Document> decode_entry(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                              const Projection& projection, const EntryView& entry) {
  auto view = DocumentView::open(*types, entry.header, entry.body);
  if (view && view->type() == nullptr) {
    FJORD_TRY(core.refresh());
    types = core.types();
    view = DocumentView::open(*types, entry.header, entry.body);
  }
  if (!view) return view.error();
  FJORD_TRY_ASSIGN(Document document, view->document());
  projection.apply(document);
  document.keep(types);
  return document;
}

}  // namespace fjord
