#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/rpc/frame_service.h"
#include "fjord/rpc/transport.h"

namespace fjord::gateway {

struct ClientServiceOptions {
  std::string node;                        ///< Name of the process: "distributor.1".
  std::vector<rpc::Address> distributors;  ///< All distributors of the cluster, from the configuration file.
};

/// The service of api/client.thrift: documents, visits, subscriptions, aggregations and jobs for programs in any
/// language.
///
/// It is a user of the client library, in the process of a distributor. The library's client starts with the first
/// call. Threading: handle() on any thread. Lifetime: the objects of `runtime` outlive it; the server that calls
/// handle() ends before it.
class ClientService final : public rpc::FrameService {
 public:
  ClientService(ClientServiceOptions options, Runtime& runtime);
  ~ClientService() override;

  bool handle(std::string_view frame, Answer& answer) override;
  /// Answers all calls that wait for documents or changes, so that the server need not wait for them, and refuses later
  /// calls.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::gateway
