#include "plugin_visitor.h"

#include <utility>

#include "plugin_process.h"

namespace fjord::plugins {
namespace {

using visitors::BucketDone;
using visitors::VisitContext;
using visitors::Visitor;

/// Passes every call to a process. The first bucket starts the process, because that can take long and this object is
/// constructed on an executor that all visitors share.
class PluginVisitor final : public Visitor {
 public:
  PluginVisitor(std::shared_ptr<PluginContext> shared, std::string library, std::string name, VisitContext& context,
                visitors::Parameters parameters)
      : shared_(std::move(shared)), library_(std::move(library)), context_(context) {
    create_.call = Call::Create;
    create_.name = std::move(name);
    create_.parameters = std::move(parameters);
  }

  Status begin_bucket(BucketId bucket) override {
    if (process_ == nullptr) FJORD_TRY(start());
    return ask(about(Call::BeginBucket, bucket)).status();
  }

  Status visit(BucketId bucket, std::string docblock) override {
    HostRequest request = about(Call::Visit, bucket);
    request.docblock = std::move(docblock);
    return ask(request).status();
  }

  void end_bucket(BucketId bucket, BucketDone done) override {
    Result<HostAnswer> answer = ask(about(Call::EndBucket, bucket));
    if (answer) {
      done({Status::ok(), std::move(answer->result)});
    } else {
      done({answer.error(), {}});
    }
  }

  void abandon_bucket(BucketId bucket) override {
    if (process_ == nullptr) return;
    const Result<HostAnswer> ignored = ask(about(Call::AbandonBucket, bucket));
    static_cast<void>(ignored);  // The next call reports the error.
  }

 private:
  Status start() {
    create_.schemas = context_.types()->schemas();
    FJORD_TRY_ASSIGN(process_, PluginProcess::start(shared_->options, library_));
    shared_->started.add();
    return ask(create_).status();
  }

  static HostRequest about(Call call, BucketId bucket) {
    HostRequest request;
    request.call = call;
    request.bucket = bucket;
    return request;
  }

  Result<HostAnswer> ask(const HostRequest& request) {
    Result<HostAnswer> answer = process_->call(
        request, shared_->options.call_timeout, [this] { return context_.cancelled(); },
        [this](HostAnswer documents) { context_.send(documents.bucket, std::move(*documents.docblock)); });
    if (!answer) shared_->say(answer.error());
    return answer;
  }

  std::shared_ptr<PluginContext> shared_;
  std::string library_;
  VisitContext& context_;
  HostRequest create_;
  std::unique_ptr<PluginProcess> process_;
};

}  // namespace

visitors::VisitorFactory plugin_visitor_factory(std::shared_ptr<PluginContext> shared, std::string library,
                                                std::string name) {
  return [shared = std::move(shared), library = std::move(library), name = std::move(name)](
             VisitContext& context, const visitors::Parameters& parameters) -> Result<std::unique_ptr<Visitor>> {
    return std::unique_ptr<Visitor>(new PluginVisitor(shared, library, name, context, parameters));
  };
}

}  // namespace fjord::plugins
