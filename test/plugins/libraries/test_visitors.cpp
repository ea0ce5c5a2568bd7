// A library of visitors, most of which misbehave.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/plugins/plugin.h"

namespace {

using fjord::BucketId;
using fjord::Status;
using fjord::visitors::BucketDone;
using fjord::visitors::Parameters;
using fjord::visitors::VisitContext;
using fjord::visitors::Visitor;

/// Forwards every block, and reports the number of documents with a count of at least `least`.
class Counting final : public Visitor {
 public:
  Counting(VisitContext& context, int least) : context_(context), least_(least) {}

  Status visit(BucketId bucket, std::string docblock) override {
    fjord::DocBlockReader reader(docblock);
    while (const auto entry = reader.next()) {
      FJORD_TRY_ASSIGN(const auto view, fjord::DocumentView::open(*context_.types(), entry->header, entry->body));
      const auto count = view.field("count");
      if (count && count->as_int64() >= least_) ++found_;
    }
    context_.send(bucket, std::move(docblock));
    return Status::ok();
  }
  /// Reports the end later, from another thread.
  void end_bucket(BucketId, BucketDone done) override {
    auto shared = std::make_shared<BucketDone>(std::move(done));
    std::thread([mailbox = context_.mailbox(), shared, text = std::to_string(std::exchange(found_, 0))] {
      mailbox.post([shared, text] { (*shared)({Status::ok(), text}); });
    }).detach();
  }
  void abandon_bucket(BucketId) override { found_ = 0; }

 private:
  VisitContext& context_;
  int least_;
  int found_ = 0;
};

class Bad final : public Visitor {
 public:
  explicit Bad(std::string how) : how_(std::move(how)) {}

  Status visit(BucketId, std::string) override {
    if (how_ == "throws") throw std::runtime_error("a bad day");
    if (how_ == "throws a number") throw 5;
    if (how_ == "refuses") return {fjord::StatusCode::NotFound, "nothing here"};
    if (how_ == "crashes") std::abort();
    if (how_ == "exits") std::_Exit(7);
    if (how_ == "loops") {
      while (true) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (how_ == "leaks") {
      while (true) leaked_.push_back(std::make_unique_for_overwrite<char[]>(std::size_t{16} << 20));
    }
    return Status::ok();
  }

 private:
  std::string how_;
  std::vector<std::unique_ptr<char[]>> leaked_;
};

}  // namespace

FJORD_PLUGIN(registry) {
  registry.add("counting", "Counts documents with count >= least",
               [](VisitContext& context, const Parameters& parameters) -> fjord::Result<std::unique_ptr<Visitor>> {
                 if (parameters.size() != 1 || parameters[0].name != "least")
                   return Status(fjord::StatusCode::InvalidArgument, "counting needs the parameter least");
                 return std::unique_ptr<Visitor>(new Counting(context, std::stoi(parameters[0].value)));
               });
  registry.add("bad", "Does what its parameter says",
               [](VisitContext&, const Parameters& parameters) -> fjord::Result<std::unique_ptr<Visitor>> {
                 return std::unique_ptr<Visitor>(new Bad(parameters.at(0).value));
               });
}
