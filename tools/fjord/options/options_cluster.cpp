#include "options/options.h"

namespace fjord::cli {

void add_dev(CLI::App& app, DevArgs& args, Action& action) {
  CLI::App* dev = command(app, "dev", "A whole cluster in this process, until Ctrl-C", "fjord dev --dir ./fjord-data");
  dev->add_option("--dir", args.directory,
                  "Where the documents are kept (default: a temporary folder, removed at the end)")
      ->type_name("DIR");
  dev->add_option("--gateways", args.gateways,
                  "Gateways for HTTP clients of a new cluster, on port 8080 or the next free ones (default: 1)")
      ->check(CLI::Range(0, 20));
  dev->callback([&] { action = [&] { return run_dev(args); }; });
}

namespace {

void add_local_shape(CLI::App& command, LocalArgs& args) {
  command.add_option("--storage", args.storage, "Storage nodes of a new cluster (default: 3)")
      ->check(CLI::Range(1, 50));
  command.add_option("--distributors", args.distributors, "Distributors of a new cluster (default: 1)")
      ->check(CLI::Range(1, 49));
  command
      .add_option("--redundancy", args.redundancy, "Copies of each document (default: 2, or 1 with one storage node)")
      ->check(CLI::Range(1, 16));
  command
      .add_option("--gateways", args.gateways,
                  "Gateways for HTTP clients of a new cluster, on port 8080 or the next free ones (default: 1)")
      ->check(CLI::Range(0, 20));
  command
      .add_option("--ports", args.ports,
                  "Ports of a new cluster: usual (8080, and from 19100 on, if they are free) or any (default: usual)")
      ->check(CLI::IsMember({"usual", "any"}));
}

}  // namespace

void add_local(CLI::App& app, LocalArgs& args, Action& action) {
  CLI::App* local = app.add_subcommand("local", "A cluster of separate processes on this machine");
  local->require_subcommand(1);
  local->footer("\nExample:\n  fjord local start --dir ./cluster --storage 4 --redundancy 2\n" +
                std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*local, name, what, example);
    made->add_option("--dir", args.directory, "Folder of the cluster")->required()->type_name("DIR");
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  const auto add_timeout = [&](CLI::App* made) {
    made->add_option("--timeout", args.timeout_s, "How long to wait until the cluster serves (default: 30s)")
        ->transform(duration(0.001, 86'400.0))
        ->type_name("DURATION");
  };
  CLI::App* create =
      add("create", "Writes the cluster.yaml of a new cluster, for changes before the first start",
          "fjord local create --dir ./cluster --storage 4 && $EDITOR ./cluster/cluster.yaml", run_local_create);
  CLI::App* start = add("start", "Makes the cluster, or starts what does not run of it; ends with an export line",
                        "eval \"$(fjord local start --dir ./cluster --storage 4 --redundancy 2)\"", run_local_start);
  for (CLI::App* one : {create, start}) add_local_shape(*one, args);
  add_timeout(start);
  add("stop", "Ends all processes of the cluster", "fjord local stop --dir ./cluster", run_local_stop);
  CLI::App* status =
      add("status", "Which processes run", "fjord local status --dir ./cluster -o json", run_local_status);
  add_output(*status, args.output);
  CLI::App* kill = add("kill", "Ends one process at once (SIGKILL), to see what happens",
                       "fjord local kill --dir ./cluster storage.2", run_local_kill);
  CLI::App* restart = add("restart",
                          "Ends one process if it runs, starts it and waits until it serves, or is in the state that "
                          "an operator wants, such as maintenance",
                          "fjord local restart --dir ./cluster storage.2", run_local_restart);
  add_timeout(restart);
  CLI::App* more = add("add-node", "Starts one more storage node and makes it part of the cluster",
                       "fjord local add-node --dir ./cluster", run_local_add_node);
  add_timeout(more);
  for (CLI::App* one : {kill, restart}) {
    one->add_option("NODE", args.node, "storage.N, distributor.N, gateway.N or fleetcontroller.0")->required();
  }
}

void add_schema(CLI::App& app, SchemaArgs& args, Action& action) {
  CLI::App* schema = app.add_subcommand("schema", "Document types");
  schema->require_subcommand(1);
  schema->footer("\nExample:\n  fjord schema deploy music.sd\n" + std::string(kExitCodes));
  CLI::App* deploy = command(
      *schema, "deploy", "Adds document types, or replaces those of the same name, if what is stored stays readable",
      "fjord schema deploy music.sd artist.sd");
  deploy->add_option("FILE", args.files, "Schemas (.sd)")->required();
  deploy
      ->add_option("--allow-drop", args.may_drop,
                   "A type or field whose stored values may be lost, TYPE.FIELD; may be given several times")
      ->type_name("PLACE")
      ->allow_extra_args(false);
  add_common(*deploy, args.common);
  deploy->callback([&] { action = [&] { return run_schema_deploy(args); }; });
  CLI::App* list = command(*schema, "list", "The document types and their fields", "fjord schema list -o json");
  add_common(*list, args.common);
  list->callback([&] { action = [&] { return run_schema_list(args); }; });
}

void add_status(CLI::App& app, Common& common, Action& action) {
  CLI::App* status = app.add_subcommand("status", "Nodes, state version, buckets in and out of sync");
  status->footer(
      "\nExample:\n  fjord status -o json\n\n"
      "Exit codes: 0 all well, 1 failed: the cluster cannot be reached or something is not served, 2 usage, 5 "
      "degraded: "
      "all is served, but a node is down or buckets are out of sync");
  add_common(*status, common);
  status->callback([&] { action = [&] { return run_status(common); }; });
}

void add_placement(CLI::App& app, PlacementArgs& args, Action& action) {
  CLI::App* placement = app.add_subcommand("placement", "Where replicas belong");
  placement->require_subcommand(1);
  placement->footer("\nExample:\n  fjord placement compare --nodes 100 --buckets 65536\n" + std::string(kExitCodes));
  CLI::App* compare =
      command(*placement, "compare",
              "Compares the placement algorithms: balance, what a change moves, time of a mapping; needs no cluster",
              "fjord placement compare --nodes 100 --buckets 65536 --change reweight --plot placement.png");
  compare->add_option("--nodes", args.nodes, "Storage nodes, all of the same capacity")
      ->required()
      ->check(CLI::Range(2, 65'000));
  compare->add_option("--buckets", args.buckets, "Buckets")->required()->check(CLI::Range(1, 1 << 24));
  compare->add_option("--replicas", args.replicas, "Replicas of each bucket (default: 3)")->check(CLI::Range(1, 16));
  compare->add_option("--groups", args.groups, "Groups that the nodes are in (default: 1)")
      ->check(CLI::Range(1, 65'000));
  compare->add_option("--tokens", args.tokens, "Tokens of a node in consistent hashing (default: 200)")
      ->check(CLI::Range(1, 10'000));
  compare
      ->add_option("--change", args.change,
                   "add a node, remove the middle one, or reweight: double its capacity (default: add)")
      ->check(CLI::IsMember({"add", "remove", "reweight"}))
      ->type_name("CHANGE");
  compare->add_option("--plot", args.plot, "Also plot into this PNG file; needs python3-matplotlib")->type_name("FILE");
  add_output(*compare, args.output);
  compare->callback([&] { action = [&] { return run_placement_compare(args); }; });
}

void add_nodes(CLI::App& app, NodeArgs& args, Action& action) {
  CLI::App* node = app.add_subcommand("node", "The nodes of the cluster: add, retire, remove, take out for a while");
  node->require_subcommand(1);
  node->footer("\nExample:\n  fjord node retire storage.2 --dry-run\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, NodeAction does, const std::string& what, const std::string& example) {
    CLI::App* made = command(*node, name, what, example);
    if (does != NodeAction::Balance) {
      made->add_option("NODE", args.nodes, "storage.N or distributor.N; several also with commas between")
          ->required()
          ->delimiter(',');
    }
    made->add_option("--reason", args.reason, "For the history of the cluster")->type_name("TEXT");
    made->add_flag("--dry-run", args.dry_run, "Only say whether it would be done, and what would move");
    made->add_flag("--force", args.force, "Although it is refused otherwise");
    made->add_option("--wait", args.wait_s, "How long to wait until it is in force and nothing is left to move")
        ->transform(duration(0.0, 864'000.0))
        ->type_name("DURATION");
    add_common(*made, args.common);
    made->callback([&args, &action, does] {
      args.action = does;
      action = [&args] { return run_node(args); };
    });
    return made;
  };
  CLI::App* list = command(*node, "list", "The nodes, their groups, capacities and what is wanted of them",
                           "fjord node list -o json");
  add_common(*list, args.common);
  list->callback([&args, &action] { action = [&args] { return run_node_list(args.common); }; });
  add("stop-check", NodeAction::StopCheck, "Is it safe to stop these nodes now? Exit code 8 if not",
      "fjord node stop-check storage.2");
  add("maintenance", NodeAction::Maintenance, "Takes nodes out for a short time; nothing is copied meanwhile",
      "fjord node maintenance storage.2 --reason 'new disk'");
  add("up", NodeAction::Up, "Takes nodes back in", "fjord node up storage.2");
  add("retire", NodeAction::Retire, "Moves all data off storage nodes, which serve until then",
      "fjord node retire storage.2 --wait 600");
  add("remove", NodeAction::Remove, "Takes nodes out of the cluster that are retired and empty",
      "fjord node remove storage.2");
  add("accept-loss", NodeAction::AcceptLoss, "Gives up the data of storage nodes that came back without it",
      "fjord node accept-loss storage.2");
  CLI::App* more = add("add", NodeAction::Add, "Makes a process that runs part of the cluster; prints its name",
                       "fjord node add storage --address 10.0.0.7:19150");
  CLI::App* replace = add("replace", NodeAction::Replace, "Another process takes the place of a node that is gone",
                          "fjord node replace storage.2 --address 10.0.0.8:19150");
  for (CLI::App* one : {more, replace}) {
    one->add_option("--address", args.address, "Where the process listens")->required()->type_name("HOST:PORT");
  }
  more->add_option("--group", args.group, "Group of a storage node (default: the only one)")->type_name("NAME");
  more->add_option("--capacity", args.capacity, "Weight in the placement (default: 1)")->type_name("NUMBER");
  CLI::App* capacity = add("capacity", NodeAction::SetCapacity, "Changes the weight of storage nodes in the placement",
                           "fjord node capacity storage.2 --to 2.5");
  capacity->add_option("--to", args.capacity, "The new weight; others have 1")->required()->type_name("NUMBER");
  CLI::App* balance = add("balance", NodeAction::Balance,
                          "Keeps single buckets elsewhere than the algorithm says, so that all nodes are equally full",
                          "fjord node balance --dry-run");
  balance
      ->add_option("--to", args.balance_to,
                   "Greatest ratio of a node's bytes to its fair share (default: 1.02); off: forget all "
                   "exceptions")
      ->type_name("NUMBER|off");
}

void add_buckets(CLI::App& app, BucketArgs& args, Action& action) {
  CLI::App* bucket =
      app.add_subcommand("bucket", "Buckets: which are not as they should be, and what is on their replicas");
  bucket->require_subcommand(1);
  bucket->footer("\nExample:\n  fjord bucket list\n" + std::string(kExitCodes));
  CLI::App* list = command(*bucket, "list", "What is wrong with which buckets, the worst first", "fjord bucket list");
  list->add_option("-n,--lines", args.lines, "Greatest number of buckets (default: 100)")
      ->check(CLI::Range(1, 1'000'000));
  add_common(*list, args.common);
  list->callback([&] { action = [&] { return run_bucket_list(args); }; });
  CLI::App* show = command(*bucket, "show", "One bucket: its distributor and what each replica of it holds",
                           "fjord bucket show id:shop:music::1\n  fjord bucket show 0x4000000000000012");
  show->add_option("ID", args.id, "Of a bucket, or of a document: its bucket, and its version on each replica")
      ->required();
  add_common(*show, args.common);
  show->callback([&] { action = [&] { return run_bucket_show(args); }; });
  CLI::App* accept =
      command(*bucket, "accept-loss",
              "Gives up what all replicas of a bucket have lost: what is left is all there is from then on",
              "fjord bucket accept-loss 0x4000000000000012 --yes");
  auto* names = accept->add_option("BUCKET", args.buckets, "As `fjord bucket list` prints them");
  accept->add_flag("--all", args.all, "All buckets of which every replica has lost something")->excludes(names);
  accept->add_flag("--yes", args.yes, "Do it; without, they are listed");
  add_common(*accept, args.common);
  accept->callback([&] { action = [&] { return run_bucket_accept_loss(args); }; });
}

void add_state(CLI::App& app, StateArgs& args, Action& action) {
  CLI::App* state = app.add_subcommand("state", "The cluster state, and how it came about");
  state->require_subcommand(1);
  state->footer("\nExample:\n  fjord state log -n 5\n" + std::string(kExitCodes));
  CLI::App* show = command(*state, "show", "The state in force, the pending one, who leads", "fjord state show");
  add_common(*show, args.common);
  show->callback([&] { action = [&] { return run_state_show(args); }; });
  CLI::App* log = command(*state, "log", "What changed, when, why, and who caused it", "fjord state log -n 50 -o json");
  log->add_option("-n,--lines", args.lines, "Number of entries, the newest ones; 0: all that are kept (default: 20)")
      ->check(whole_number(0, std::numeric_limits<unsigned>::max()));
  log->add_option("--about", args.about,
                  "Only entries in which this text occurs, such as storage.1, slow or the name of an operator; with "
                  "several, any of them")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  log->add_option("--except", args.except, "Without entries in which this text occurs")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add_common(*log, args.common);
  log->callback([&] { action = [&] { return run_state_log(args); }; });
  CLI::App* recover = command(*state, "recover",
                              "Gives a fleet controller whose records are lost what the nodes know: the newest cluster "
                              "state, schemas, settings. Documents are not touched",
                              "fjord state recover --from-nodes --dry-run");
  recover->add_flag("--from-nodes", args.from_nodes, "Take over what nodes report")->required();
  recover->add_flag("--dry-run", args.dry_run, "Only show what was found and what would be published");
  recover->add_flag("--force", args.force, "Although nodes do not answer, which may know something newer");
  recover
      ->add_option("--controller", args.controller, "The fleet controller (default: the one that a distributor asks)")
      ->type_name("HOST:PORT");
  add_common(*recover, args.common);
  recover->callback([&] { action = [&] { return run_state_recover(args); }; });
}

void add_config(CLI::App& app, ConfigArgs& args, Action& action) {
  CLI::App* config = app.add_subcommand("config", "Settings that change while the cluster runs, for all nodes at once");
  config->require_subcommand(1);
  config->footer("\nExample:\n  fjord config set cluster.redundancy=3\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*config, name, what, example);
    add_common(*made, args.common);
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  add("list", "All settings; which nodes have not taken them yet, and why", "fjord config list", run_config_list);
  add("history", "The versions of the configuration", "fjord config history", run_config_history);
  CLI::App* get = add("get", "The value of settings", "fjord config get cluster.redundancy", run_config_get);
  CLI::App* explain = add("explain", "What settings mean, their bounds and defaults",
                          "fjord config explain storage.file_bytes_max", [](ConfigArgs one) {
                            one.explain = true;
                            return run_config_get(one);
                          });
  CLI::App* unset = add("unset", "Back to the default", "fjord config unset cluster.redundancy", run_config_unset);
  for (CLI::App* one : {get, explain, unset}) one->add_option("NAME", args.names, "Settings")->required();
  CLI::App* set = add("set", "Changes settings, all of them or none",
                      "fjord config set distributor.document_bytes_max=1MiB", run_config_set);
  set->add_option("NAME=VALUE", args.names, "Settings and their new values")->required();
  CLI::App* revert = add("revert", "Everything as in an earlier version, or as before the last change",
                         "fjord config revert 3", run_config_revert);
  revert->add_option("VERSION", args.version, "See history (default: the one before)")->check(whole_number(1));
  for (CLI::App* one : {set, unset, revert}) {
    one->add_flag("--dry-run", args.dry_run, "Only check, and say what changes");
    one->add_option("--reason", args.reason, "For the history")->type_name("TEXT");
  }
  for (const bool paused : {true, false}) {
    CLI::App* made = command(
        app, paused ? "pause" : "resume",
        paused ? "Stops the movement of data; what is missing is still repaired" : "Goes on with the movement of data",
        paused ? "fjord pause" : "fjord resume");
    add_common(*made, args.common);
    made->callback([&args, &action, paused] { action = [&args, paused] { return run_maintenance(args, paused); }; });
  }
}

}  // namespace fjord::cli
