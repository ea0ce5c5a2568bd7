// Subscriptions: changes of documents.
#include "fjord/library/subscription.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "options.h"
#include "stream.h"

namespace fjord::python {

namespace {

/// The class _core.Subscription of the Python module. Threading: as Stream (stream.h).
class SubscriptionObject {
 public:
  SubscriptionObject(ClientHandle& handle, std::shared_ptr<Client> client, std::unique_ptr<Subscription> source,
                     std::vector<std::string> only)
      : stream_(handle, std::move(client), std::move(source)), only_(std::move(only)) {}

  static std::unique_ptr<SubscriptionObject> open(ClientHandle& handle, SubscribeOptions options) {
    options.decode = false;
    const std::shared_ptr<Client> client = handle.use_connected();
    auto source = handle.run([client, options] { return std::make_unique<Subscription>(client->subscribe(options)); });
    check(source->status());
    return std::make_unique<SubscriptionObject>(handle, client, std::move(source),
                                                options.type.empty() ? options.fields : std::vector<std::string>());
  }

  Stream<Subscription>& stream() { return stream_; }

  /// Returns the next change that has arrived; None if there is none.
  nb::object try_next() {
    const Stream<Subscription>::Use use(stream_);
    if (stream_.is_over()) return nb::none();
    const Change* const change = stream_.source().try_next();
    return change == nullptr ? nb::none() : to_object(*change);
  }

  /// Returns the next change; waits for it, at most `timeout` if there is one: None then. Raises StopIteration at the
  /// end.
  nb::object next(std::optional<double> timeout) {
    const auto deadline = std::chrono::steady_clock::now() + to_duration(timeout);
    while (true) {
      nb::object change = try_next();
      if (!change.is_none()) return change;
      const Stream<Subscription>::Use use(stream_);
      if (stream_.is_over()) {
        stream_.check_end();
        throw nb::stop_iteration();
      }
      if (!timeout) {
        stream_.wait();
      } else if (!stream_.wait_within(deadline)) {
        return nb::none();
      }
    }
  }

 private:
  nb::object to_object(const Change& change) {
    static PyObject* const made = nb::object(nb::module_::import_("fjord.documents").attr("Change")).release().ptr();
    return run_python([&] { return to_object(change, nb::handle(made)); });
  }

  nb::object to_object(const Change& change, nb::handle type) {
    switch (change.kind) {
      case Change::Kind::Put: {
        const nb::object document = stream_.to_document(*change.entry, only_);
        return type("put", document.attr("id"), change.version.us, document);
      }
      case Change::Kind::Remove:
        return type("remove", to_str(change.id), change.version.us, nb::none());
      case Change::Kind::CaughtUp:
        return type("caught_up", nb::none(), change.version.us, nb::none());
      case Change::Kind::Resync:
        break;
    }
    return type("resync", nb::none(), change.version.us, nb::none());
  }

  Stream<Subscription> stream_;
  std::vector<std::string> only_;
};

void set_poll_interval(SubscribeOptions& options, double seconds) {
  options.poll_interval = to_duration(seconds, "poll_interval");
}

}  // namespace

void bind_subscription(nb::module_& module) {
  nb::class_<SubscribeOptions>(module, "SubscribeOptions")
      .def(nb::init<>())
      .def_rw("selection", &SubscribeOptions::selection)
      .def_rw("type", &SubscribeOptions::type)
      .def_rw("fields", &SubscribeOptions::fields)
      .def_rw("resume", &SubscribeOptions::resume)
      .def_rw("from_now", &SubscribeOptions::from_now)
      .def_rw("buffer_bytes", &SubscribeOptions::buffer_bytes)
      .def_prop_rw("poll_interval", &get_nothing<SubscribeOptions>, &set_poll_interval);
  nb::class_<SubscriptionObject>(module, "Subscription")
      .def("next", &SubscriptionObject::next, nb::arg("timeout").none())
      .def("try_next", &SubscriptionObject::try_next)
      .def_prop_ro("is_over", [](SubscriptionObject& self) { return self.stream().is_over(); })
      .def("check_end", [](SubscriptionObject& self) { self.stream().check_end(); })
      .def("ready", [](SubscriptionObject& self, Completions& completions) { return self.stream().ready(completions); })
      .def("stop", [](SubscriptionObject& self) { self.stream().stop(); })
      .def_prop_ro("cursor", [](SubscriptionObject& self) { return self.stream().source().cursor(); });
  module.def("subscribe", &SubscriptionObject::open, nb::keep_alive<0, 1>());
}

}  // namespace fjord::python
