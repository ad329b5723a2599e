"""Every documented name of the helpers is there, and has its line on the page for who comes from Scrapy Cluster."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "from-scrapy-cluster.md").read_text("utf-8")
METHODS = {
    "argparse_helper.ArgparseHelper": "",
    "log_factory.LogFactory": "get_instance",
    "log_factory.LogObject": "debug info warn warning error critical register_callback",
    "method_timer.MethodTimer": "timeout",
    "redis_queue.RedisQueue": "push pop clear __len__",
    "redis_queue.RedisStack": "push pop clear __len__",
    "redis_queue.RedisPriorityQueue": "push pop clear __len__",
    "redis_throttled_queue.RedisThrottledQueue": "push pop clear __len__",
    "settings_wrapper.SettingsWrapper": "load load_from_string settings",
    "stats_collector.StatsCollector": "get_time_window get_rolling_time_window get_counter get_unique_counter"
    " get_hll_counter get_bitmap_counter",
    "stats_collector.TimeWindow": "increment value get_key delete_key",
    "stats_collector.RollingTimeWindow": "increment value get_key delete_key",
    "stats_collector.Counter": "increment value get_key delete_key",
    "stats_collector.UniqueCounter": "increment value get_key delete_key",
    "stats_collector.HyperLogLogCounter": "increment value get_key delete_key",
    "stats_collector.BitmapCounter": "increment value get_key delete_key",
    "zookeeper_watcher.ZookeeperWatcher": "is_valid get_file_contents ping close",
}
PARAMETERS = {
    "log_factory.LogObject": "json stdout name dir file bytes backups level format propagate include_extra",
    "redis_queue.RedisQueue": "server key encoding",
    "redis_queue.RedisPriorityQueue": "server key encoding",
    "redis_throttled_queue.RedisThrottledQueue": "redisConn myQueue throttleWindow throttleLimit moderate windowName"
    " modName elastic elastic_buffer",
    "settings_wrapper.SettingsWrapper.load": "local default",
    "settings_wrapper.SettingsWrapper.load_from_string": "settings_string module_name",
    "stats_collector.StatsCollector.get_time_window": "redis_conn host port password key cycle_time start_time window"
    " roll keep_max",
    "stats_collector.StatsCollector.get_rolling_time_window": "redis_conn host port password key cycle_time window",
    "stats_collector.StatsCollector.get_counter": "redis_conn host port password key cycle_time start_time window roll"
    " keep_max start_at",
    "method_timer.MethodTimer.timeout": "timeout_time default",
    "zookeeper_watcher.ZookeeperWatcher": "hosts filepath valid_handler config_handler error_handler pointer ensure"
    " valid_init",
    "zookeeper_watcher.ZookeeperWatcher.close": "kill_restart",
    "zookeeper_watcher.ZookeeperWatcher.get_file_contents": "pointer",
}


def found(name: str) -> object:
    module, _, rest = name.partition(".")
    one: object = importlib.import_module(f"warcmill.scutils.{module}")
    for part in rest.split("."):
        one = getattr(one, part)
    return one


@pytest.mark.parametrize("name", METHODS)
def test_a_documented_class_has_its_methods_and_its_line(name: str) -> None:
    assert {method for method in METHODS[name].split() if not hasattr(found(name), method)} == set()
    module, _, kind = name.partition(".")
    assert f"`scutils.{module}`" in PAGE
    assert kind in PAGE or kind == "LogObject"


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_have_their_documented_names_and_order(name: str) -> None:
    one = found(name)
    assert callable(one)
    names = [parameter for parameter in inspect.signature(one).parameters if parameter != "self"]
    assert names == PARAMETERS[name].split()
