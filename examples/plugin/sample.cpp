// A visitor that sends one document in `one_in`. The choice depends only on the ids, so the same documents come at any
// time and on any nodes. Other documents do not leave the storage node.
//
//   fjord visit --visitor sample --param one_in=100

#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include <fjord/common/hash.h>
#include <fjord/plugins/plugin.h>

namespace {

using fjord::Result;
using fjord::Status;
using fjord::StatusCode;

class Sample final : public fjord::visitors::Visitor {
 public:
  Sample(fjord::visitors::VisitContext& context, std::uint64_t one_in) : context_(context), one_in_(one_in) {}

  Status visit(fjord::BucketId bucket, std::string docblock) override {
    fjord::DocBlockReader reader(docblock);
    fjord::DocBlockBuilder chosen;
    while (const auto entry = reader.next()) {
      ++seen_;
      if (fjord::hash64(entry->gid.view()) % one_in_ == 0) chosen.add(*entry);
    }
    if (!chosen.empty()) context_.send(bucket, chosen.take());
    return Status::ok();
  }

  void end_bucket(fjord::BucketId, fjord::visitors::BucketDone done) override {
    done({Status::ok(), std::to_string(std::exchange(seen_, 0))});
  }

  void abandon_bucket(fjord::BucketId) override { seen_ = 0; }

 private:
  fjord::visitors::VisitContext& context_;
  std::uint64_t one_in_;
  std::uint64_t seen_ = 0;
};

Result<std::unique_ptr<fjord::visitors::Visitor>> make(fjord::visitors::VisitContext& context,
                                                       const fjord::visitors::Parameters& parameters) {
  std::uint64_t one_in = 0;
  if (parameters.size() == 1 && parameters[0].name == "one_in") {
    const std::string& text = parameters[0].value;
    std::from_chars(text.data(), text.data() + text.size(), one_in);
  }
  if (one_in == 0) return Status(StatusCode::InvalidArgument, "sample needs one parameter, one_in, from 1 on");
  return std::unique_ptr<fjord::visitors::Visitor>(new Sample(context, one_in));
}

}  // namespace

FJORD_PLUGIN(registry) { registry.add("sample", "Sends one document in one_in", &make); }
