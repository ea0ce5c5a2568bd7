// MapReduce jobs.
#include "fjord/library/jobs.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "job_records.h"
#include "record.h"

namespace fjord::python {

namespace {

constexpr std::size_t kRowsAtOnce = 1024;

nb::dict pass_to_dict(const JobPassInfo& pass) {
  return Record()
      .add("state", pass.state)
      .add("application", pass.application)
      .add("type", pass.type)
      .add("selection", pass.selection)
      .add("parameters", pass.parameters)
      .add("into", pass.into.type)
      .add("map_tasks", pass.map_tasks)
      .add("map_tasks_done", pass.map_tasks_done)
      .add("reduce_tasks", pass.reduce_tasks)
      .add("reduce_tasks_done", pass.reduce_tasks_done)
      .add("tasks_repeated", pass.tasks_repeated)
      .add("documents_read", pass.documents_read)
      .add("documents_reused", pass.documents_reused)
      .add("bytes_read", pass.bytes_read)
      .add("dead_letters", pass.dead_letters)
      .add("tuples", pass.tuples)
      .add("results", pass.results)
      .add("documents_put", pass.documents_put)
      .add("documents_removed", pass.documents_removed)
      .take();
}

/// Runs a call of Jobs without the interpreter lock.
template <typename F>
auto call(ClientHandle& handle, F f) {
  const std::shared_ptr<Client> client = handle.use_connected();
  return handle.run([client, f] { return f(client->jobs()); });
}

nb::object dict_of(Result<JobInfo> job) { return job_to_dict(value_of(std::move(job))); }

std::string submit(ClientHandle& handle, const JobRequest& request) {
  return value_of(call(handle, [request](Jobs jobs) { return jobs.submit(request); }));
}

nb::object wait(ClientHandle& handle, const std::string& id, nb::handle on_progress) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  std::stop_source stop;
  auto report = progress_to(mailbox, on_progress);
  return dict_of(
      handle.run([client, id, report, token = stop.get_token()] { return client->jobs().wait(id, report, token); },
                 {&stop, mailbox}));
}

nb::list list(ClientHandle& handle) {
  return records_of(value_of(call(handle, [](Jobs jobs) { return jobs.list(); })), job_to_dict);
}

nb::list dead_letters(ClientHandle& handle, const std::string& id) {
  return records_of(
      value_of(call(handle, [id](Jobs jobs) { return jobs.dead_letters(id); })),
      [](const JobDeadLetter& letter) { return nb::make_tuple(to_str(letter.document), to_str(letter.error)); });
}

JobPassRequest pass_from_json(const std::string& json) { return value_of(JobPassRequest::from_json(json)); }

/// The results of a job. Threading: one thread at a time, as JobRows. Lifetime: `handle` outlives it (nb::keep_alive).
class JobRowsObject {
 public:
  JobRowsObject(ClientHandle& handle, const std::string& id)
      : handle_(handle), shared_(std::make_shared<Shared>(handle.use_connected(), id)) {}
  JobRowsObject(const JobRowsObject&) = delete;
  JobRowsObject& operator=(const JobRowsObject&) = delete;
  ~JobRowsObject() {
    const Unlocked unlocked;
    shared_.reset();
  }

  /// Returns the next rows as pairs of key and JSON text; an empty list at the end.
  nb::list next() {
    const auto rows = handle_.run([shared = shared_] {
      std::vector<JobRow> taken;
      while (taken.size() < kRowsAtOnce) {
        const JobRow* row = shared->rows.next();
        if (row == nullptr) break;
        taken.push_back(*row);
      }
      return taken;
    });
    if (rows.empty()) check(shared_->rows.status());
    return records_of(rows, [](const JobRow& row) { return nb::make_tuple(to_str(row.key), to_str(row.value)); });
  }

 private:
  struct Shared {
    Shared(std::shared_ptr<Client> own_client, const std::string& id)
        : client(std::move(own_client)), rows(client->jobs().results(id)) {}
    std::shared_ptr<Client> client;
    JobRows rows;  // is destroyed before the client
  };
  ClientHandle& handle_;
  std::shared_ptr<Shared> shared_;
};

template <typename F>
void change(ClientHandle& handle, F f) {
  check(call(handle, f));
}

void bind_requests(nb::module_& module) {
  nb::class_<JobTarget>(module, "JobTarget")
      .def(nb::init<>())
      .def_rw("type", &JobTarget::type)
      .def_rw("name_space", &JobTarget::name_space)
      .def_rw("name", &JobTarget::name);
  nb::class_<JobPassRequest>(module, "JobPassRequest")
      .def(nb::init<>())
      .def_rw("application", &JobPassRequest::application)
      .def_rw("type", &JobPassRequest::type)
      .def_rw("selection", &JobPassRequest::selection)
      .def_rw("parameters", &JobPassRequest::parameters)
      .def_rw("into", &JobPassRequest::into)
      .def_static("of_script", &JobPassRequest::of_script)
      .def_static("of_aggregation", &JobPassRequest::of_aggregation)
      .def_static("from_json", &pass_from_json);
  nb::class_<JobRequest>(module, "JobRequest")
      .def(nb::init<>())
      .def("add_pass", [](JobRequest& self, const JobPassRequest& pass) { self.passes.push_back(pass); })
      .def_rw("settings", &JobRequest::settings)
      .def_rw("incremental", &JobRequest::incremental)
      .def_rw("output_namespace", &JobRequest::output_namespace)
      .def_rw("output_buckets", &JobRequest::output_buckets)
      .def_rw("visitors_per_node", &JobRequest::visitors_per_node);
}

}  // namespace

nb::dict job_to_dict(const JobInfo& job) {
  return Record()
      .add("id", job.id)
      .add("state", to_string(job.state))
      .add("phase", job.phase)
      .add("error", job.error ? nb::none() : to_exception(job.error))
      .add("fraction_done", job.fraction_done)
      .add("left", job.left == Duration(0) ? nb::none() : seconds_or_none(job.left))
      .add("bound_by", job.bound_by)
      .add("passes", records_of(job.passes, pass_to_dict))
      .add("passes_done", job.passes_done)
      .add("dead_letters", job.dead_letters)
      .add("settings", job.settings)
      .add("output_namespace", job.output_namespace)
      .add("owner", job.owner)
      .add("is_live", job.is_live)
      .add("taken_over", job.taken_over)
      .add("documents_read", job.documents_read())
      .add("submitted_unix_us", job.submitted_unix_us)
      .add("finished_unix_us", job.finished_unix_us)
      .add("results_removed", job.results_removed)
      .take();
}

std::function<void(const JobInfo&)> progress_to(const std::shared_ptr<Mailbox>& mailbox, nb::handle f) {
  if (f.is_none()) return {};
  return [mailbox, f](const JobInfo& job) { mailbox->post([f, job] { f(job_to_dict(job)); }); };
}

void bind_jobs(nb::module_& module) {
  bind_requests(module);
  nb::class_<JobRowsObject>(module, "JobRows")
      .def(nb::init<ClientHandle&, const std::string&>(), nb::keep_alive<1, 2>())
      .def("next", &JobRowsObject::next);
  module.def("job_submit", &submit);
  module.def("job_wait", &wait, nb::arg(), nb::arg(), nb::arg().none());
  module.def("job_list", &list);
  module.def("job_dead_letters", &dead_letters);
  module.def("job_status", [](ClientHandle& handle, const std::string& id) {
    return dict_of(call(handle, [id](Jobs jobs) { return jobs.status(id); }));
  });
  module.def("job_pause", [](ClientHandle& handle, const std::string& id) {
    change(handle, [id](Jobs jobs) { return jobs.pause(id); });
  });
  module.def("job_resume", [](ClientHandle& handle, const std::string& id) {
    change(handle, [id](Jobs jobs) { return jobs.resume(id); });
  });
  module.def("job_cancel", [](ClientHandle& handle, const std::string& id) {
    change(handle, [id](Jobs jobs) { return jobs.cancel(id); });
  });
  module.def("job_set",
             [](ClientHandle& handle, const std::string& id, const std::map<std::string, std::string>& settings) {
               change(handle, [id, settings](Jobs jobs) { return jobs.set(id, settings); });
             });
  module.def("job_remove", [](ClientHandle& handle, const std::string& id) {
    change(handle, [id](Jobs jobs) { return jobs.remove(id); });
  });
  module.def("job_remove_results", [](ClientHandle& handle, const std::string& id) {
    change(handle, [id](Jobs jobs) { return jobs.remove_results(id); });
  });
}

}  // namespace fjord::python
