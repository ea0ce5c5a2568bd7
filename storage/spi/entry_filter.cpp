#include "fjord/storage/spi/entry_filter.h"

#include "fjord/document/document.h"
#include "fjord/document/document_format.h"

namespace fjord::spi {

EntryFilter::EntryFilter(const IterateOptions& options) : options_(options) {
  if (options_.selection != nullptr && options_.selection->is_trivial()) options_.selection = nullptr;
  FJORD_CHECK(options_.selection == nullptr || options_.types != nullptr);
}

bool EntryFilter::wants(Timestamp timestamp, bool removed) const {
  return options_.from <= timestamp && timestamp <= options_.to && (!removed || options_.include_removed);
}

bool EntryFilter::selects_on_body() const { return has_selection() && options_.selection->needs_body(); }

Result<bool> EntryFilter::matches(std::string_view header, std::string_view body) {
  if (!has_selection()) return true;
  const Result<DocumentView> view = DocumentView::open(*options_.types, header, body);
  if (!view) return false;
  FJORD_TRY_ASSIGN(const Match match, options_.selection->try_evaluate(*view, &steps_));
  return match == Match::True;
}

std::string_view EntryFilter::project(std::string_view header) const {
  if (options_.parts != Parts::IdOnly) return header;
  const std::string_view id = document_id_of_header(header);
  if (id.empty()) return {};
  return header.substr(0, static_cast<std::size_t>(id.data() + id.size() - header.data()));
}

}  // namespace fjord::spi
