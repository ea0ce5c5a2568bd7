// Searches for ads by keywords.
#include "fjord/library/search.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "options.h"
#include "record.h"

namespace fjord::python {

namespace {

nb::dict to_dict(const SearchPlace& place) {
  return Record()
      .add("ad", place.ad)
      .add("advertiser", place.advertiser)
      .add("keyword", place.keyword)
      .add("title", place.title)
      .add("matched", place.matched)
      .add("bid_micros", place.bid_micros)
      .add("price_micros", place.price_micros)
      .add("quality_ppm", place.quality_ppm)
      .take();
}

nb::dict to_dict(const SearchResult& found) {
  return Record()
      .add("places", records_of(found.places, [](const SearchPlace& place) { return to_dict(place); }))
      .add("is_complete", found.is_complete())
      .add("missing", found.missing)
      .add("slices", found.slices)
      .add("slices_searched", found.slices_searched)
      .add("keywords_matched", found.keywords_matched)
      .add("seconds", found.took)
      .add("variants", found.variants)
      .take();
}

nb::dict search(ClientHandle& handle, const SearchRequest& request) {
  const std::shared_ptr<Client> client = handle.use();
  const SearchResult found = handle.wait(client->search(request));
  check(found.status);
  return to_dict(found);
}

}  // namespace

void bind_search(nb::module_& module) {
  nb::class_<SearchRequest>(module, "SearchRequest")
      .def(nb::init<>())
      .def_rw("query", &SearchRequest::query)
      .def_rw("context", &SearchRequest::context)
      .def_rw("limit", &SearchRequest::limit)
      .def_rw("session", &SearchRequest::session)
      .def_prop_rw("timeout", &get_nothing<SearchRequest>, &set_timeout<SearchRequest>);
  module.def("search", &search);
}

}  // namespace fjord::python
