"""Logs as brokers write them, line by line: Mosquitto, EMQX, NATS and captures; what is no event is counted by reason."""

from __future__ import annotations

import bz2
import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import WorkloadError
from sim.workloads.format.workload import Workload
from sim.workloads.traces.broker_logs import BROKER_LOGS
from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
from sim.workloads.traces.events import EVENT_LAYOUTS
from sim.workloads.traces.layouts import lay_over

MOSQUITTO = """\
1772352000: mosquitto version 2.0.11 starting
1772352000: New connection from 127.0.0.1:34103 on port 1883.
1772352000: New client connected from 127.0.0.1:34103 as pub er (p2, c1, k60, u'me').
1772352000: No will message specified.
1772352000: Sending CONNACK to pub er (0, 0)
1772352000: Received PUBLISH from pub er (d0, q1, r1, m1, 'config/lamp', ... (2 bytes))
1772352000: Sending PUBACK to pub er (m1, rc0)
1772352001: New client connected from 127.0.0.1:52673 as phone (p2, c0, k60).
1772352001: Will message specified (4 bytes) (r0, q1).
1772352001: \tgone/phone
1772352001: Received SUBSCRIBE from phone
1772352001: \thome/# (QoS 1)
1772352001: phone 1 home/#
1772352001: \tsecret/# (QoS 1)
1772352001: \tconfig/+ (QoS 0)
1772352001: phone 0 config/+
1772352001: Sending SUBACK to phone
1772352001: Sending PUBLISH to phone (d0, q0, r1, m0, 'config/lamp', ... (2 bytes))
1772352002: New client connected from 127.0.0.1:48261 as w0 (p5, c1, k60).
1772352002: Received SUBSCRIBE from w0
1772352002: \t$share/crew/home/+ (QoS 1)
1772352002: w0 1 $share/crew/home/+
1772352003: Received PUBLISH from pub er (d0, q2, r0, m12, 'home/it's (1) x, 'y'', ... (1 bytes))
1772352003: Sending PUBLISH to phone (d0, q1, r0, m1, 'home/it's (1) x, 'y'', ... (1 bytes))
1772352003: Sending PUBLISH to phone (d1, q1, r0, m1, 'home/it's (1) x, 'y'', ... (1 bytes))
1772352003: Sending PUBLISH to w0 (d0, q1, r0, m1, 'home/it's (1) x, 'y'', ... (1 bytes))
1772352003: Sending PUBLISH to phone (d0, q0, r0, m0, '$SYS/broker/uptime', ... (9 bytes))
1772352003: Received PINGREQ from phone
1772352004: Received UNSUBSCRIBE from phone
1772352004: \tconfig/+
1772352004: phone config/+
1772352004: Sending UNSUBACK to phone
1772352005: Client phone has exceeded timeout, disconnecting.
1772352006: Received DISCONNECT from w0
1772352006: Client w0 disconnected.
1772352006: Client <unknown> closed its connection.
1772352006: Client pub er [127.0.0.1:34103] closed its connection.
"""


def read(name: str, text: str) -> tuple[list[tuple[str, ...]], Counter[str]]:
    """Action, client, topic and size of the events of a log, and the reasons of other lines."""
    events, reasons = [], Counter[str]()
    for made in BROKER_LOGS[name].reader().read(iter(text.splitlines())):
        if isinstance(made, str):
            reasons[made] += 1
        else:
            events += [tuple(filter(None, (one.action, one.client, one.topic, one.size))) for one in made]
    return events, reasons


def prepare(tmp_path: Path, name: str, *texts: str | bytes) -> Workload:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
    options = EventOptions(filters=BROKER_LOGS[name].filters)
    return prepare_events(None, paths, tmp_path / "w", EVENT_LAYOUTS[name], options)


def test_a_log_of_mosquitto() -> None:
    """A subscription that is not granted does not count; the will of a client that is lost is published."""
    events, reasons = read("mosquitto", MOSQUITTO)
    topic = "home/it's (1) x, 'y'"
    assert events == [
        ("connect", "pub er"),
        ("publish", "pub er", "config/lamp", "2"),
        ("connect", "phone"),
        ("subscribe", "phone", "home/#"),
        ("subscribe", "phone", "config/+"),
        ("deliver", "phone", "config/lamp", "2"),
        ("connect", "w0"),
        ("subscribe", "w0", "$share/crew/home/+"),
        ("publish", "pub er", topic, "1"),
        ("deliver", "phone", topic, "1"),
        ("deliver", "w0", topic, "1"),
        ("unsubscribe", "phone", "config/+"),
        ("disconnect", "phone"),
        ("publish", "phone", "gone/phone", "4"),
        ("disconnect", "w0"),
        ("disconnect", "pub er"),
    ]
    assert reasons == {
        "notice": 4,
        "heading": 9,
        "will": 2,
        "acknowledgement": 4,
        "ping": 1,
        "sent again": 1,
        "published by the broker itself": 1,
    }


def test_mosquitto_without_the_lines_of_granted_subscriptions() -> None:
    text = re.sub(r"(?m)^\d+: (phone|w0) [01] .*\n", "", MOSQUITTO)
    events, _ = read("mosquitto", text)
    assert [event for event in events if event[0] == "subscribe"] == [
        ("subscribe", "phone", "home/#"),
        ("subscribe", "phone", "secret/#"),
        ("subscribe", "phone", "config/+"),
    ]


def test_a_prepared_log_of_mosquitto(tmp_path: Path) -> None:
    """Compressed, with Windows' ends of lines; its whole seconds are spread, and what was retained before is left out."""
    text = MOSQUITTO.replace("r1, m1, 'config/lamp'", "r0, m1, 'config/lamp'").replace("\n", "\r\n")
    text = text.encode() + b"\xff 1772352006: odd\n"
    workload = prepare(tmp_path, "mosquitto", bz2.compress(text))
    assert workload.rows == {
        "read": 39,
        "kept": 15,
        "quarantined": {"unparsable": 1, "retained": 1},
        "left_out": {
            "acknowledgement": 4,
            "heading": 9,
            "notice": 4,
            "ping": 1,
            "published by the broker itself": 1,
            "sent again": 1,
            "will": 2,
        },
    }
    users = workload.users.names.to_pylist()
    assert users == ["phone", "pub er", "w0"]
    assert [users[user] for user in workload.deliveries.subscriber.tolist()] == ["phone", "w0"]
    assert workload.publications.time.tolist() == [0.5, 3.0, 5.5]
    assert workload.generator["seen"]["subscribe"] == {"qos": {"0": 1, "1": 2}}
    quarantine = pq.read_table(tmp_path / "w" / "quarantine" / "part-00000.parquet").to_pylist()
    assert [(row["line"], row["reason"]) for row in quarantine] == [(18, "retained"), (38, "unparsable")]


def test_two_events_of_one_line_without_effect_are_both_in_quarantine(tmp_path: Path) -> None:
    """A client that was not connected is lost twice in a row of a capture."""
    text = "frame.time_epoch,tcp.stream,tcp.srcport,mqtt.msgtype,mqtt.clientid,mqtt.topic,mqtt.topic_len,mqtt.len\n"
    text += '1,0,5,1,c,,,\n2,0,5,"10,10,3",,"a,b,t","1,1,1","5,5,4"\n'
    workload = prepare(tmp_path, "tshark", text)
    assert workload.rows is not None
    assert workload.rows["quarantined"] == {"no_effect": 2}
    quarantine = pq.read_table(tmp_path / "w" / "quarantine" / "part-00000.parquet").to_pylist()
    assert [(row["line"], row["raw"]) for row in quarantine] == 2 * [(3, text.splitlines()[2])]


EMQX = [
    ("mqtt_packet_received", "CONNECT(Q0, R0, D0, ClientId=phone, ProtoName=MQTT, ProtoVsn=5, CleanStart=true, KeepAlive=30, "
     "Username=undefined, Password=, Will(Q1, R1, Topic=home/will, of phone Payload(text)=gone))"),
    ("mqtt_packet_sent", "CONNACK(Q0, R0, D0, AckFlags=0, ReasonCode=0)"),
    ("mqtt_packet_received", "SUBSCRIBE(Q1, R0, D0, PacketId=7 TopicFilters=[home/#(#{nl => 0,qos => 1,rap => 0,rh => 0}),"
     "secret/+(#{nl => 0,qos => 2,rap => 0,rh => 0})])"),
    ("mqtt_packet_sent", "SUBACK(Q0, R0, D0, PacketId=7, ReasonCodes=[1,135])"),
    ("mqtt_packet_received", "PUBLISH(Q1, R0, D0, Topic=home/a, b, PacketId=8, Payload(text)=on)"),
    ("mqtt_packet_sent", "PUBLISH(Q0, R0, D0, Topic=home/a, b, PacketId=undefined, Payload(hex)=6F6E)"),
    ("mqtt_packet_sent", "PUBLISH(Q1, R0, D1, Topic=home/a, b, PacketId=9, Payload(text)=on)"),
    ("mqtt_packet_received", "PINGREQ(Q0, R0, D0)"),
    ("authorization_permission_allowed", ""),
    ("mqtt_packet_received", "UNSUBSCRIBE(Q1, R0, D0, PacketId=9 TopicFilters=[home/#])"),
    ("socket_force_closed", ""),
]  # fmt: skip
EMQX_EVENTS = [
    ("connect", "phone"),
    ("subscribe", "phone", "home/#"),
    ("subscribe", "phone", "secret/+"),
    ("unsubscribe", "phone", "secret/+"),
    ("publish", "phone", "home/a, b", "2"),
    ("deliver", "phone", "home/a, b", "2"),
    ("unsubscribe", "phone", "home/#"),
    ("disconnect", "phone"),
    ("publish", "phone", "home/will, of phone", "4"),
]


@pytest.mark.parametrize("layout", ["meta", "flat", "text"])
def test_a_trace_of_emqx(layout: str) -> None:
    """As the traces and the log have it: within `meta`, beside it, or as text; a refused subscription is given up at once."""
    lines = []
    for second, (said, packet) in enumerate(EMQX):
        time = f"2026-03-01T08:00:{second:02}.000001+00:00"
        about = {"clientid": "phone", "packet": packet, "peername": "127.0.0.1:1"}
        if layout == "text":
            lines.append(
                f"{time} [debug] msg: {said}, line: 1, peername: 127.0.0.1:1, clientid: phone, packet: {packet}, tag: MQTT"
            )
        elif layout == "flat":
            lines.append(json.dumps({"time": time, "level": "debug", "msg": said, **about}))
        else:
            lines.append(json.dumps({"time": time, "level": "debug", "msg": said, "meta": about}))
    events, reasons = read("emqx", "\n".join([*lines, "no line of it"]))
    assert events == EMQX_EVENTS
    assert reasons == {"acknowledgement": 1, "sent again": 1, "ping": 1, "notice": 1, "": 1}


@pytest.mark.parametrize("layout", ["json", "text"])
def test_a_trace_of_emqx_counts_microseconds(tmp_path: Path, layout: str) -> None:
    """Times since 1970, the default of logs in JSON."""
    lines = []
    for second, (said, packet) in enumerate(EMQX):
        time = 1772352000250000 + 10**6 * second
        about = {"time": time, "level": "debug", "msg": said, "clientid": "phone", "packet": packet}
        text = f"{time} [debug] msg: {said}, clientid: phone, packet: {packet}, tag: MQTT"
        lines.append(json.dumps(about) if layout == "json" else text)
    workload = prepare(tmp_path, "emqx", "\n".join(lines))
    assert workload.origin == "2026-03-01T08:00:00Z"
    assert workload.publications.time.tolist() == [4.25, 10.25]


NATS = """\
[7] 2026/03/01 08:00:00.291003 [INF] Starting nats-server
[7] 2026/03/01 08:00:01.468181 [DBG] 127.0.0.1:44960 - cid:4 - Client connection created
[7] 2026/03/01 08:00:01.469053 [TRC] 127.0.0.1:44960 - cid:4 - <<- [CONNECT {"lang": "python3", "name": "shop", "verbose": false}]
[7] 2026/03/01 08:00:01.469131 [TRC] 127.0.0.1:44960 - cid:4 - "v2.16.0:python3:shop" - ->> [PONG]
[7] 2026/03/01 08:00:01.471052 [TRC] 127.0.0.1:44998 - cid:7 - <<- [CONNECT {"lang": "go", "verbose": false}]
[7] 2026/03/01 08:00:01.471685 [TRC] 127.0.0.1:45014 - cid:8 - <<- [CONNECT {"lang": "go", "name": "shop"}]
[7] 2026/03/01 08:00:01.471987 [TRC] 127.0.0.1:44998 - cid:7 - "v1:go" - <<- [SUB orders.* crew 1]
[7] 2026/03/01 08:00:01.472017 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - <<- [SUB orders.>  1]
[7] 2026/03/01 08:00:01.472020 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - <<- [SUB orders.new  2]
[7] 2026/03/01 08:00:02.472501 [TRC] 127.0.0.1:44960 - cid:4 - "v2.16.0:python3:shop" - <<- [HPUB orders.new reply.1 18 23]
[7] 2026/03/01 08:00:02.472505 [TRC] 127.0.0.1:44960 - cid:4 - "v2.16.0:python3:shop" - <<- MSG_PAYLOAD: ["hello"]
[7] 2026/03/01 08:00:02.472534 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - ->> [HMSG orders.new 1 reply.1 18 23]
[7] 2026/03/01 08:00:02.472536 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - ->> [HMSG orders.new 2 reply.1 18 23]
[7] 2026/03/01 08:00:02.472549 [TRC] 127.0.0.1:44998 - cid:7 - "v1:go" - ->> [HMSG orders.new 1 reply.1 18 23]
[7] 2026/03/01 08:00:03.472549 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - <<- [UNSUB 1 ]
[7] 2026/03/01 08:00:03.472550 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - <-> [DELSUB 1]
[7] 2026/03/01 08:00:04.140371 [DBG] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - Client connection closed: Client Closed
[7] 2026/03/01 08:00:04.140372 [TRC] 127.0.0.1:45014 - cid:8 - "v1:go:shop" - <-> [DELSUB 2]
"""


def test_a_trace_of_nats(tmp_path: Path) -> None:
    """Two connections of one name are told apart; a message is delivered once to a client, and once to a queue group."""
    events, reasons = read("nats", NATS)
    second = "shop cid:8"
    assert events == [
        ("connect", "shop"),
        ("connect", "cid:7"),
        ("connect", second),
        ("subscribe", "cid:7", "orders.*"),
        ("subscribe", second, "orders.>"),
        ("subscribe", second, "orders.new"),
        ("publish", "shop", "orders.new", "23"),
        ("deliver", second, "orders.new", "23"),
        ("deliver", "cid:7", "orders.new", "23"),
        ("unsubscribe", second, "orders.>"),
        ("disconnect", second),
    ]
    assert reasons == {
        "notice": 2,
        "ping": 1,
        "payload": 1,
        "request": 2,
        "delivered to a second subscription of a client": 1,
    }
    workload = prepare(tmp_path, "nats", NATS)
    assert workload.users.names.to_pylist() == ["cid:7", "shop", second]
    assert workload.deliveries.subscriber.tolist() == [2, 0]
    assert workload.origin == "2026-03-01T08:00:01Z"


def test_connections_and_advisories_of_nats() -> None:
    """The answer of /connz, over several lines, and advisories, one on each; a line that breaks off does not take others with it."""
    detail = [{"subject": "orders.*", "qgroup": "crew", "sid": "1"}, {"subject": "a.b", "sid": "2"}]
    connection = {"cid": 4, "name": "w", "start": "2026-03-01T08:00:00Z", "subscriptions_list_detail": detail}
    closed = {"cid": 5, "start": "2026-03-01T08:00:00Z", "stop": "2026-03-01T08:01:00Z", "subscriptions_list": ["x"]}
    connz = json.dumps({"server_id": "N", "connections": [connection, closed]}, indent=2)
    advisories = [
        {
            "type": f"io.nats.server.advisory.v1.client_{kind}",
            "timestamp": "2026-03-01T08:02:00Z",
            "client": {"id": 9, "name": "v"},
        }
        for kind in ("connect", "disconnect")
    ]
    first, second = map(json.dumps, advisories)
    websocket = "[1] 2026/03/01 08:03:00.000001 [TRC] 127.0.0.1:5000 - wid:7 - <<- [PUB a.b  2]"
    events, reasons = read("nats", "\n".join([connz, first, second[:40], second, websocket]))
    assert events == [
        ("connect", "w"),
        ("subscribe", "w", "orders.*"),
        ("subscribe", "w", "a.b"),
        ("connect", "cid:5"),
        ("subscribe", "cid:5", "x"),
        ("disconnect", "cid:5"),
        ("connect", "v"),
        ("disconnect", "v"),
        ("publish", "cid:7", "a.b", "2"),
    ]
    assert reasons == {"part of a document": len(connz.splitlines()) - 1 + 1}


TSHARK = """\
frame.time_epoch,tcp.stream,tcp.srcport,tcp.flags.fin,mqtt.msgtype,mqtt.clientid,mqtt.conflag.cleansess,mqtt.topic,mqtt.qos,\
mqtt.retain,mqtt.dupflag,mqtt.sub.qos,mqtt.len,mqtt.topic_len,mqtt.msg
"1.5","0","5000","0","1","phone","0",,,,,,"17",,
"1.6","0","1883","0","2",,,,,,,,"2",,
"2.0","1","5001","0","1","pub, er","1",,,,,,"17",,
"3.0","0","5000","0","8,8",,,"home/#,config/+,a,b,c","","","","1,0,2","22,13","6,8,3,1",
"4.0","1","5001","0","3,3,14",,,"home/x,y,home/z","1,0","0,0","0,0",,"14,8,0","8,6","7878"
"4.1","0","1883","0","3,3",,,"home/x,y,home/z","0,0","0,0","0,0",,"12,8","8,6","7878"
"4.2","0","1883","0","3,3",,,"home/z,cfg","1,1","0,1","1,0",,"11,8","6,3","7878,78"
"4.3","9","1883","0","3",,,"home/z","1","0","0",,"11","6",""
"5.0","2","5002","0","1","phone","1",,,,,,"17",,
"5.1","0","1883","1",,,,,,,,,,,
"6.0","2","5002","0","10",,,"home/#",,,,,"10","6",
"7.0","2","5002","1",,,,,,,,,,,
"""


def test_the_fields_of_a_capture() -> None:
    """Several packets a row, topics with commas by their lengths; who sent a stream's CONNECT is its client."""
    events, reasons = read("tshark", TSHARK)
    assert events == [
        ("connect", "phone"),
        ("connect", "pub, er"),
        ("subscribe", "phone", "home/#"),
        ("subscribe", "phone", "config/+"),
        ("subscribe", "phone", "a,b"),
        ("subscribe", "phone", "c"),
        ("publish", "pub, er", "home/x,y", "2"),
        ("publish", "pub, er", "home/z", "0"),
        ("disconnect", "pub, er"),
        ("deliver", "phone", "home/x,y", "2"),
        ("deliver", "phone", "home/z", "0"),
        ("deliver", "phone", "cfg", "1"),
        ("connect", "phone"),
        ("unsubscribe", "phone", "home/#"),
        ("disconnect", "phone"),
    ]
    assert reasons == {"header": 1, "acknowledgement": 1, "no CONNECT in the capture": 1, "no packet": 1}


WILLS = """\
frame.time_epoch,tcp.stream,tcp.srcport,tcp.flags.fin,mqtt.msgtype,mqtt.clientid,mqtt.topic,mqtt.conflag.qos,mqtt.conflag.retain,\
mqtt.willtopic,mqtt.willmsg_len,mqtt.disconnect.reason_code
"1","0","5000","0","1","lamp","","1","1","gone,lamp","3",""
"2","1","5001","0","1","lamp","","0","0","over","0",""
"3","0","5000","1","","","","","","","",""
"4","1","5001","1","","","","","","","",""
"5","2","5002","0","1","sun","","2","0","set","9",""
"6","2","5002","0","14","","","","","","","0"
"7","3","5003","0","1","sun","","2","0","set","9",""
"8","3","5003","0","14","","","","","","","4"
"9","4","5004","0","1","sun","","2","0","set","9",""
"9.5","4","1883","0","14","","","","","","","142"
"""


def test_a_will_is_published_unless_its_client_takes_its_leave() -> None:
    """When it is lost, when another one takes over, when the broker disconnects it, and when it asks for that."""
    events, _ = read("tshark", WILLS)
    assert events == [
        ("connect", "lamp"),
        ("publish", "lamp", "gone,lamp", "3"),
        ("connect", "lamp"),
        ("disconnect", "lamp"),
        ("publish", "lamp", "over", "0"),
        ("connect", "sun"),
        ("disconnect", "sun"),
        ("connect", "sun"),
        ("disconnect", "sun"),
        ("publish", "sun", "set", "9"),
        ("connect", "sun"),
        ("disconnect", "sun"),
        ("publish", "sun", "set", "9"),
    ]


BROKEN = (
    ("mosquitto", MOSQUITTO),
    (
        "emqx",
        "\n".join(json.dumps({"time": "2026", "msg": said, "clientid": "c", "packet": text}) for said, text in EMQX),
    ),
    ("nats", NATS + json.dumps({"connections": [{"name": "w", "subscriptions_list_detail": [{"subject": "a"}]}]})),
    ("tshark", TSHARK),
)


@pytest.mark.parametrize(("name", "text"), BROKEN)
@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 300), st.integers(0, 3), st.sampled_from('",:[]{}()0²x\t ')),
        max_size=6,
    )
)
def test_broken_lines_are_read_without_an_error(name: str, text: str, broken: list[tuple[int, int, int, str]]) -> None:
    """Some characters of some lines are replaced: every line still says something or is told to be foreign."""
    lines = text.splitlines()
    for line, at, length, put in broken:
        old = lines[line % len(lines)]
        lines[line % len(lines)] = old[:at] + put + old[at + length :]
    made = list(BROKER_LOGS[name].reader().read(iter(lines)))
    assert len(lines) <= len(made) <= len(lines) + 1
    assert all(value is None or isinstance(value, str) for one in made for event in one for value in event)


def test_a_capture_of_mqtt_5() -> None:
    """Rows as tshark 4.0 writes them: how long a session is kept, what was asked for, and a message without content."""
    names = (
        "frame.time_epoch",
        "tcp.stream",
        "tcp.srcport",
        "mqtt.msgtype",
        "mqtt.clientid",
        "mqtt.conflag.cleansess",
        "mqtt.topic",
    )
    names += (
        "mqtt.topic_len",
        "mqtt.len",
        "mqtt.qos",
        "mqtt.subscription_options_qos",
        "mqtt.property_id",
        "mqtt.prop_number",
    )
    rows = [
        ("1", "0", "5", "1", "v5", "1", "", "", "20", "", "", "0x21,0x11", "10,30", ""),
        ("2", "0", "5", "8", "", "", "a/#,b", "3,1", "13", "", "1,0", "", "", ""),
        ("3", "0", "5", "3", "", "", "b", "1", "4", "0", "", "", "", "<MISSING>"),
    ]
    text = "\n".join("\t".join(row) for row in [(*names, "mqtt.msg"), *rows])
    _, *made = BROKER_LOGS["tshark"].reader().read(iter(text.splitlines()))
    events = [event for one in made for event in one if not isinstance(event, str)]
    assert [(one.action, one.clean, one.expiry, one.qos, one.size) for one in events] == [
        ("connect", "1", "30", None, None),
        ("subscribe", None, None, "1", None),
        ("subscribe", None, None, "0", None),
        ("publish", None, None, "0", "0"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "mosquitto",
            "a,b\nc,d\n",
            "line 1: expected a line of Mosquitto's log, with log_type all, found 'a,b' (2 of 2 rows",
        ),
        ("mosquitto", "1: New connection from x on port 1.\n", "no line says what a client does (notice 1)"),
        (
            "mosquitto",
            "now: Client x disconnected.\n",
            "the time looks wrong: expected a time such as 1287532527.5, found 'now'",
        ),
        ("tshark", "frame.time_epoch,mqtt.topic\n1,a\n", "line 1: expected a line of the MQTT fields of a capture"),
    ],
)
def test_what_is_no_such_log_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        prepare(tmp_path, name, text)


def test_options_that_a_log_does_not_have() -> None:
    for changes, message in (
        ({"columns": "time"}, "--columns: has no effect with --format nats, whose lines have a meaning of their own"),
        ({"header": True}, "--header: has no effect with --format nats"),
    ):
        with pytest.raises(WorkloadError, match=message):
            lay_over(EVENT_LAYOUTS["nats"], **changes)
    with pytest.raises(WorkloadError, match="--append: has no effect with --format nats, which is read as a whole"):
        prepare_events(None, ["x"], Path("w"), EVENT_LAYOUTS["nats"], EventOptions(append=True))
