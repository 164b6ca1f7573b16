"""The words of every topic in both languages: plain data, parsed by lexicon.py.

Each stanza is a topic: its English and Korean names, the preposition of its places, then its word lists, most frequent
word first. An entry is `english=korean`. A slash introduces an irregular form (plural, past or comparative), `#` names
the sense of an ambiguous word, `*` an irregular Korean stem (굽다 → 구웠다). A topic has two groups of things; any verb
or look of a group fits any thing of that group.
"""

TOPICS = """
river 강 at
places: river=강, lake=호수, waterfall=폭포
people: angler=낚시꾼, camper=야영객, boatman/boatmen=뱃사공, swimmer=수영객
acts: swim/swam=헤엄치다, walk=걷다*, rest=쉬다
things: bank#riverside=강둑, bridge=다리#bridge, island=섬, spring#water=샘, rock=바위, path=오솔길
verbs: visit=찾아가다, photograph=찍다, pass=지나다, leave/left=떠나다
looks: wide=넓다, slippery=미끄럽다*, peaceful=평화롭다*
things: duck=오리, crane#bird=두루미, frog=개구리, turtle=거북, eel=장어, otter=수달
verbs: watch=지켜보다, chase=쫓다, feed/fed=먹이다, follow=따라가다
looks: wild=거칠다, quick=재빠르다, shy=수줍다

money 돈 at
places: office=사무실, counter=창구, market=시장
people: banker=은행원, customer=손님, clerk=직원, lawyer=변호사
acts: wait=기다리다, work=일하다, argue=다투다
things: bank#money=은행, company=회사, shop=가게, factory=공장, branch#office=지점, hotel=호텔
verbs: open=열다, close=닫다, sell/sold=팔다, buy/bought=사다
looks: rich=부유하다, safe=안전하다, modern=세련되다
things: coin=동전, bill=지폐, seal#stamp=도장, check=수표, card=카드, receipt=영수증
verbs: count=세다, keep/kept=보관하다, hand=건네다, lose/lost=잃다
looks: valuable=귀중하다, thin=얇다, stiff=빳빳하다

orchard 과수원 in
places: orchard=과수원, field=밭, barn=헛간
people: farmer=농부, worker=일꾼, villager=마을사람, neighbor=이웃
acts: work=일하다, sing/sang=노래하다, nap/napped=졸다
things: pear=배#pear, apple=사과#apple, chestnut=밤#chestnut, peach=복숭아, grape=포도, plum=자두
verbs: pick=따다, eat/ate=먹다, wash=씻다, peel=깎다
looks: sweet=달다, sour=시다, fresh=싱싱하다
things: basket=바구니, ladder=사다리, cart=수레, shovel=삽, box=상자, hoe=호미
verbs: carry=나르다, push=밀다, lend/lent=빌려주다, fix=고치다
looks: sturdy=튼튼하다, deep=깊다, handy=편리하다

sea 바다 at
places: harbor=항구, pier=부두, beach=바닷가
people: sailor=선원, captain=선장, fisherman/fishermen=어부, diver=잠수부
acts: rest=쉬다, shout=외치다, sing/sang=노래하다
things: ship=배#ship, net=그물, crane#machine=기중기, rope=밧줄, anchor=닻, sail=돛
verbs: pull=당기다, repair=수리하다, paint=칠하다, tie=묶다
looks: strong=튼튼하다, huge=거대하다, tough=질기다
things: crab=게, seal#animal=물개, oyster=굴#oyster, whale=고래, octopus=문어, shell=조개
verbs: catch/caught=잡다, spot/spotted=발견하다, examine=살펴보다, describe=묘사하다
looks: slippery=미끄럽다*, salty=짜다, slow=느리다

hospital 병원 in
places: hospital=병원, clinic=진료소, ward=병실
people: doctor=의사, nurse=간호사, patient=환자, surgeon=외과의
acts: cough=기침하다, sleep/slept=자다, groan=신음하다
things: belly=배#belly, eye=눈#eye, leg=다리#leg, palm#hand=손바닥, chest#body=가슴, nail#finger=손톱
verbs: examine=진찰하다, touch=만지다, treat=치료하다, cover=가리다
looks: sore=아프다, weak=약하다, pale=창백하다
things: pill=알약, bottle=병, bandage=붕대, mask#medical=마스크, needle=바늘, thermometer=체온계
verbs: prepare=준비하다, store=보관하다, hand=건네다, order=주문하다
looks: expensive=비싸다, soft=부드럽다*, clear=투명하다

mountain 산 on
places: mountain=산, hill=언덕, slope=비탈
people: climber=등산가, guide=안내원, hiker=등산객, ranger=산지기
acts: slip/slipped=미끄러지다, shiver=떨다, rest=쉬다
things: snow=눈#snow, cave=굴#cave, cliff=절벽, peak=봉우리, glacier=빙하, valley=골짜기
verbs: cross=건너다, photograph=찍다, explore=탐험하다, admire=감상하다
looks: white=하얗다*, cold=차갑다*, steep=가파르다
things: tent=천막, boot=등산화, glove=장갑, sled=썰매, backpack=배낭, flashlight=손전등
verbs: carry=나르다, pack=챙기다, borrow=빌리다, dry=말리다
looks: warm=따뜻하다, thick=두껍다*, sturdy=튼튼하다

ranch 목장 at
places: ranch=목장, stable=마구간, meadow=초원
people: rider=기수, rancher=목장주, shepherd=목동, vet=수의사
acts: laugh=웃다, shout=외치다, gallop=달리다
things: horse=말#horse, cow=소, goat=염소, sheep/sheep=양, donkey=당나귀, pig=돼지
verbs: feed/fed=먹이다, brush=빗기다, lead/led=이끌다, train=길들이다
looks: gentle=온순하다, fat=뚱뚱하다, hungry=배고프다
things: saddle=안장, bucket=양동이, wagon=마차, bell=방울, whip=채찍, haystack=건초더미
verbs: move=옮기다, hang/hung=걸다, sell/sold=팔다, inspect=점검하다
looks: loose=느슨하다, solid=단단하다, shabby=허름하다

debate 토론 in
places: hall=회관, courtroom=법정, square=광장
people: speaker=연사, judge=판사, reporter=기자, politician=정치인
acts: nod/nodded=끄덕이다, protest=항의하다, pause=망설이다
things: speech=말#speech, apology=사과#apology, promise=약속, question=질문, answer=대답, rumor=소문
verbs: repeat=되풀이하다, believe=믿다, hear/heard=듣다*, ignore=무시하다
looks: honest=솔직하다, polite=공손하다, boring=지루하다
things: law=법, punishment=벌#punishment, verdict=판결, rule=규칙, tax=세금, fine=벌금
verbs: accept=받아들이다, explain=설명하다, announce=발표하다, change=바꾸다
looks: fair=공정하다, strict=엄격하다, harsh=가혹하다

garden 정원 in
places: garden=정원, greenhouse=온실, yard=마당
people: gardener=정원사, florist=꽃장수, beekeeper=양봉가, botanist=식물학자
acts: hum/hummed=흥얼거리다, dance=춤추다, relax=쉬다
things: rose=장미, grass=풀#grass, palm#tree=야자수, lily=백합, tulip=튤립, bush=덤불
verbs: plant=심다, trim/trimmed=다듬다, grow/grew=가꾸다, smell=맡다
looks: fragrant=향기롭다*, colorful=화려하다, lush=무성하다
things: bee=벌#bee, butterfly=나비, ant=개미, spider=거미, beetle=딱정벌레, snail=달팽이
verbs: observe=관찰하다, catch/caught=잡다, chase=쫓다, disturb=괴롭히다
looks: busy=바쁘다, harmless=순하다, noisy=시끄럽다*

stadium 운동장 at
places: stadium=야구장, gym=체육관, playground=운동장
people: pitcher#player=투수, coach=코치, batter=타자, umpire=심판
acts: run/ran=뛰다, cheer=환호하다, train=훈련하다
things: ball=공, bat#club=방망이, helmet=헬멧, uniform=유니폼, mitt=글러브, whistle=호루라기
verbs: grab/grabbed=움켜쥐다, throw/threw=던지다, drop/dropped=떨어뜨리다, wash=빨다
looks: hard=단단하다, smooth=매끄럽다*, dirty=더럽다*
things: match#game=경기, race=경주, tournament=대회, final=결승전, record=기록, medal=메달
verbs: describe=묘사하다, celebrate=기념하다, expect=기대하다, report=알리다
looks: thrilling=짜릿하다, important=중요하다, tough=힘들다

kitchen 부엌 in
places: kitchen=부엌, restaurant=식당, bakery=빵집
people: cook=요리사, baker=제빵사, waiter=종업원, guest=손님
acts: hurry=서두르다, chat/chatted=수다떨다, wait=기다리다
things: noodle=국수, soup=국, dumpling=만두, egg=달걀, pancake=부침개, cookie=과자
verbs: taste=맛보다, cook=요리하다, share=나누다, order=시키다
looks: hot=뜨겁다*, delicious=맛있다, spicy=맵다*
things: pot=냄비, pitcher#jug=물병, knife/knives=칼, plate=접시, spoon=숟가락, cup=잔
verbs: wash=씻다, polish=닦다, hide/hid=숨기다, borrow=빌리다
looks: greasy=기름지다, round=둥글다, sharp=날카롭다*

road 도로 on
places: road=도로, street=거리, highway=고속도로
people: driver=운전사, mechanic=정비사, passenger=승객, policeman/policemen=경찰관
acts: stop/stopped=멈추다, wait=기다리다, yawn=하품하다
things: car=차#car, bus=버스, truck=트럭, bicycle=자전거, taxi=택시, motorcycle=오토바이
verbs: park=주차하다, drive/drove=몰다, stop/stopped=세우다, repair=고치다
looks: fast=빠르다, loud=시끄럽다*, yellow=노랗다*
things: wheel=바퀴, trunk#car=짐칸, tire=타이어, engine=엔진, mirror=거울, seat=좌석
verbs: inspect=점검하다, replace=갈다, clean=닦다, remove=떼다
looks: flat=납작하다, loose=느슨하다, oily=기름지다

teahouse 찻집 in
places: teahouse=찻집, temple=절, parlor=응접실
people: monk=승려, poet=시인, host=주인, guest=손님
acts: meditate=명상하다, smile=웃다, whisper=속삭이다
things: tea=차#tea, coffee=커피, juice=주스, cocoa=코코아, milkshake=밀크셰이크, lemonade=레모네이드
verbs: drink/drank=마시다, serve=대접하다, sip/sipped=홀짝이다, brew=끓이다
looks: warm=따뜻하다, bitter=쓰다, fragrant=향기롭다*
things: poem=시, scroll=족자, fan=부채, vase=꽃병, cushion=방석, screen#panel=병풍
verbs: praise=칭찬하다, arrange=정돈하다, offer=바치다, admire=감상하다
looks: elegant=우아하다, delicate=섬세하다, antique=예스럽다*

music 음악 in
places: theater=극장, auditorium=강당, studio=녹음실
people: singer=가수, pianist=피아니스트, conductor=지휘자, composer=작곡가
acts: sing/sang=노래하다, practice=연습하다, clap/clapped=박수치다
things: piano=피아노, organ=오르간, violin=바이올린, drum=북, flute=피리, guitar=기타
verbs: play=연주하다, tune=조율하다, learn=배우다, love=사랑하다
looks: soft=은은하다, grand=웅장하다, beautiful=아름답다*
things: song=노래, note#music=음표, melody=가락, rhythm=박자, chorus=합창, symphony=교향곡
verbs: hear/heard=듣다*, write/wrote=쓰다, remember=기억하다, copy=베끼다
looks: sad=슬프다, cheerful=경쾌하다, slow=느리다

school 학교 in
places: school=학교, library=도서관, classroom=교실
people: pupil=학생, teacher=교사, librarian=사서, principal=교장
acts: study=공부하다, chat/chatted=수다떨다, yawn=하품하다
things: book=책, letter#mail=편지, note#paper=쪽지, novel=소설, dictionary=사전, magazine=잡지
verbs: read/read=읽다, write/wrote=쓰다, open=펴다, copy=베끼다
looks: interesting=재미있다, difficult=어렵다*, easy=쉽다*
things: pencil=연필, glue=풀#glue, eraser=지우개, ruler=자, brush=붓, notebook=공책
verbs: share=나누다, lend/lent=빌려주다, lose/lost=잃어버리다, buy/bought=사다
looks: cheap=싸다, useful=유용하다, handy=편리하다

forest 숲 in
places: forest=숲, jungle=밀림, zoo=동물원
people: hunter=사냥꾼, woodcutter=나무꾼, explorer=탐험가, keeper=사육사
acts: camp=야영하다, walk=걷다*, tremble=떨다
things: bear=곰, bat#animal=박쥐, mouse#animal/mice=쥐, wolf/wolves=늑대, fox=여우, tiger=호랑이
verbs: hunt=사냥하다, follow=뒤쫓다, observe=관찰하다, fear=무서워하다
looks: fierce=사납다*, clever=영리하다, hungry=배고프다
things: mushroom=버섯, branch#tree=나뭇가지, trunk#tree=나무줄기, acorn=도토리, leaf/leaves=나뭇잎, berry=산딸기
verbs: gather=줍다*, pile=쌓다, burn=태우다, dry=말리다
looks: rough=거칠다, fresh=싱싱하다, moist=촉촉하다

computer 컴퓨터 in
places: lab=연구실, office=사무실, classroom=교실
people: programmer=개발자, engineer=기술자, designer=디자이너, student=대학생
acts: worry=걱정하다, yawn=하품하다, work=일하다
things: mouse#device/mice=마우스, screen#display=화면, robot=로봇, printer=인쇄기, keyboard=자판, speaker=스피커
verbs: assemble=조립하다, test=시험하다, repair=고치다, design=설계하다
looks: fast=빠르다, complex=복잡하다, expensive=비싸다
things: program=프로그램, file=파일, password=암호, message=메시지, game=게임, table#chart=표#chart
verbs: delete=지우다, save=저장하다, send/sent=보내다, check=확인하다
looks: simple=간단하다, useful=유용하다, safe=안전하다

workshop 공방 in
places: workshop=공방, garage=차고, attic=다락방
people: carpenter=목수, blacksmith=대장장이, apprentice=견습생, clockmaker=시계공
acts: work=일하다, sweat=땀흘리다, hurry=서두르다
things: nail#metal=못, spring#coil=용수철, hammer=망치, screw=나사, saw=톱, hinge=경첩
verbs: sort=고르다, make/made=만들다, bend/bent=구부리다, order=주문하다
looks: hard=단단하다, blunt=무디다, thin=가늘다
things: table#furniture=탁자, chest#box=궤짝, shelf/shelves=선반, bed=침대, drawer=서랍, cupboard=찬장
verbs: build/built=짜다, paint=칠하다, move=옮기다, measure=재다
looks: wide=넓다, square=네모나다, sturdy=튼튼하다

fashion 유행 at
places: mall=백화점, salon=미용실, boutique=옷가게
people: tailor=재단사, model=모델, jeweler=보석상, barber=이발사
acts: smile=웃다, chat/chatted=수다떨다, hesitate=망설이다
things: ring=반지, necklace=목걸이, earring=귀걸이, bracelet=팔찌, crown=왕관, brooch=브로치
verbs: choose/chose=고르다, wrap/wrapped=포장하다, polish=닦다, steal/stole=훔치다
looks: precious=귀하다, dazzling=눈부시다, slim=가늘다
things: skirt=치마, bow#ribbon=리본, coat=외투, hat=모자, scarf/scarves=목도리, belt=허리띠
verbs: wash=빨다, sew=꿰매다, iron=다리다, wear/wore=걸치다
looks: soft=부드럽다*, thick=두껍다*, stylish=멋지다

space 우주 at
places: observatory=천문대, planetarium=천문관, base=기지
people: astronomer=천문학자, astronaut=우주인, scientist=과학자, visitor=관람객
acts: dream=꿈꾸다, wait=기다리다, celebrate=기뻐하다
things: star#sky=별, moon=달, planet=행성, comet=혜성, galaxy=은하, cloud=구름
verbs: observe=관측하다, study=연구하다, discover=발견하다, photograph=찍다
looks: bright=밝다, distant=멀다, mysterious=신비롭다*
things: rocket=로켓, telescope=망원경, satellite=위성, spaceship=우주선, probe=탐사선, antenna=안테나
verbs: build/built=만들다, test=시험하다, design=설계하다, control/controlled=조종하다
looks: precise=정밀하다, huge=거대하다, complex=복잡하다

film 영화 in
places: cinema=영화관, theater=극장, studio=촬영장
people: star#actor=배우, director=감독, critic=평론가, writer=작가
acts: rehearse=연습하다, cry=울다, laugh=웃다
things: film=영화, scene=장면, comedy=희극, tragedy=비극, trailer=예고편, ending=결말
verbs: watch=보다, shoot/shot=찍다, criticize=비판하다, edit=편집하다
looks: funny=우습다*, sad=슬프다, boring=지루하다
things: ticket=표#ticket, mask#costume=가면, camera=사진기, wig=가발, poster=포스터, costume=의상
verbs: hold/held=들다, prepare=준비하다, buy/bought=사다, lose/lost=잃어버리다
looks: fancy=화려하다, expensive=비싸다, odd=괴상하다

castle 성 in
places: castle=성, palace=궁궐, tower=탑
people: knight=기사#knight, king=임금, archer=궁수, guard=문지기
acts: fight/fought=싸우다, march=행진하다, dance=춤추다
things: sword=검, bow#weapon=활, shield=방패, arrow=화살, spear=창, dagger=단검
verbs: raise=들다, steal/stole=훔치다, polish=닦다, break/broke=부러뜨리다
looks: sharp=날카롭다*, dangerous=위험하다, sacred=신성하다
things: flag=깃발, throne=왕좌, treasure=보물, statue=석상, map=지도, jewel=보석
verbs: guard=지키다, hide/hid=숨기다, admire=감상하다, touch=만지다
looks: splendid=찬란하다, precious=귀하다, mysterious=신비롭다*

home 집 in
places: house=집, bedroom=침실, basement=지하실
people: cousin=사촌, uncle=삼촌, aunt=이모, twin=쌍둥이
acts: sleep/slept=자다, laugh=웃다, argue=다투다
things: candle=양초, match#fire=성냥, stove=난로, lighter=라이터, heater=난방기, lantern=호롱불
verbs: light/lit=켜다, fetch=가져오다, hide/hid=숨기다, buy/bought=사다
looks: dangerous=위험하다, bright=밝다, hot=뜨겁다*
things: blanket=이불, pillow=베개, towel=수건, carpet=양탄자, curtain=커튼, sheet=홑이불
verbs: fold=개다, wash=빨다, shake/shook=털다, spread/spread=펴다
looks: soft=부드럽다*, cozy=포근하다, thin=얇다

newspaper 신문 in
places: newsroom=편집실, archive=자료실, library=도서관
people: editor=편집자, journalist=언론인, writer=작가, publisher=발행인
acts: argue=다투다, hurry=서두르다, sigh=한숨쉬다
things: letter#alphabet=글자, word=낱말, sentence=문장, headline=제목, paragraph=문단, phrase=어구
verbs: correct=바로잡다, print=인쇄하다, erase=지우다, read/read=읽다
looks: clear=또렷하다, short=짧다, clumsy=어색하다
things: article=기사#article, photo=사진, advertisement=광고, cartoon=만화, interview=회견, column=칼럼
verbs: publish=싣다*, cut/cut=오리다, discuss=논하다, sell/sold=팔다
looks: famous=유명하다, funny=우습다*, important=중요하다
"""
