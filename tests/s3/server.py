"""An S3 server on loopback that checks signatures, with one bucket and one pair of keys.

Prints its URL and the two keys, logs each request to stderr, and ends with its standard input. Lines that come there:
`make BUCKET` and `remove BUCKET`, each answered with a line when it is done.
"""

import json
import os
import sys

# So many requests are let in without keys that it knows: those that make the bucket and the keys.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"


def client(service, key="none", secret="none"):
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )


client("s3").create_bucket(Bucket=sys.argv[1])
iam = client("iam")
iam.create_user(UserName="crawler")
keys = iam.create_access_key(UserName="crawler")["AccessKey"]
allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
iam.put_user_policy(UserName="crawler", PolicyName="all", PolicyDocument=policy)
print(url, keys["AccessKeyId"], keys["SecretAccessKey"], flush=True)

s3 = client("s3", keys["AccessKeyId"], keys["SecretAccessKey"])
for line in sys.stdin:
    what, bucket = line.split()
    if what == "make":
        s3.create_bucket(Bucket=bucket)
    else:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for found in page.get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=found["Key"])
        s3.delete_bucket(Bucket=bucket)
    print("done", flush=True)
